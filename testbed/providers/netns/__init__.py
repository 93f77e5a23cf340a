"""Nodes as network namespaces of one Linux host, inside a sandbox."""
