"""Programs that run where pods and nodes are; Python's standard library only."""
