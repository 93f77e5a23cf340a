"""The same scenarios under one enforcement after another."""
