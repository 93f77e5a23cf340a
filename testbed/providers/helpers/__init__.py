"""Nodes of clusters that exist, entered by a helper pod on each."""
