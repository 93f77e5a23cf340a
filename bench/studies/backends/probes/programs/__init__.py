"""Programs that run by their path where the nodes are; Python's standard library only."""
