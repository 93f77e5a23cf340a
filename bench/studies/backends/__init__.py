"""Which backend for a cluster? What each costs, and how soon it is there.

See docs/explanation/backends-measured.md.
"""

from __future__ import annotations

from bench.console import values
from bench.console.verb import MANY, choice, study_verb

VERB = study_verb(
    "backends",
    "Measure every backend that this machine can run: what it costs, and how soon it knows of a change.",
    choice(
        "backend",
        MANY,
        "one backend, or one of its settings; may be repeated (default: all that there are)",
        values.backends,
    ),
    choice(
        "part",
        MANY,
        "guarantee, round-trip, throughput, cost, first, nodes; may be repeated (default: all)",
    ),
    choice(
        "nodes",
        MANY,
        "how many nodes a cluster has in the last part; may be repeated (default: 3, 10, 30, 60)",
    ),
    choice(
        "repetitions",
        "",
        "how often each is measured but the nodes (default: 12 throughput, 5 cost and first)",
    ),
    choice("seed", "", "of the order in which backends take turns (default: 0)"),
    alone="backend",
)
