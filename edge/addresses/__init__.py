"""Which node of a cluster has which block of pod addresses."""
