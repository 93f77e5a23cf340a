"""The node's uplink: who was promised what on it, and the kernel state that keeps it.

`records`, `htb` and `tables` only compute and render; `ledger` remembers; `observe` reads the kernel back;
`differences` compares; `kernel` runs.
"""
