"""Clusters that exist already run the pods."""
