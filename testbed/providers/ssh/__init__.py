"""Nodes as machines that exist already, reached by SSH."""
