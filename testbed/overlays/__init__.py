"""How pods of different nodes reach each other: what ``ip`` and ``bridge`` are told, and daemons."""
