"""The operations of CNI: one module for each, and `release`, which DEL and GC have in common."""
