"""Which promises does a network keep? Checks of any CNI plugin, and a report that others can read."""
