"""Which backend for a cluster? What each costs, and how soon it is there; see docs/backends-study.md."""
