"""The operations of CNI: one module for each."""
