"""How nodes are joined, as text for ``ip`` and ``tc``: rendered here, run elsewhere."""
