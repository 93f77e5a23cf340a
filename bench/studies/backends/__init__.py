"""Which backend for a cluster? What each costs, and how soon it is there.

See docs/explanation/backends-measured.md.
"""
