"""Programs that run by their path where traffic ends; Python's standard library only."""
