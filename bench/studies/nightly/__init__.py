"""The same scenarios every night: do the guarantees still hold, and are they kept as well as before?"""

from __future__ import annotations

from bench.console import values
from bench.console.statuses import CHANGED, JUDGED
from bench.console.verb import (
    DURATION,
    ORCHESTRATOR,
    PROVIDER,
    REPORTS,
    SCALE,
    SCENARIOS,
    SET,
    Option,
    Verb,
    flag,
    many,
    text,
)

VERB = Verb(
    "nightly",
    "Do the guarantees still hold, and as well as in the nights before?",
    "studies.nightly.verb:judge",
    (
        SCENARIOS,
        SET,
        many(
            "replay",
            "do all but run, from a recording: its directory, run id, or packed file; may be repeated",
            values.runs,
        ),
        SCALE._replace(default=0.1),
        DURATION,
        Option("repetitions", 5, "how often each scenario's traffic runs"),
        Option("history", "reports/history", "the directory of the machines' histories"),
        Option(
            "to",
            "reports/nightly",
            "the directory of nightly.md, junit.xml, bigger.json, smaller.json and trend.html",
        ),
        text("acknowledged", "the file of changes that are as they should be (default: nightly.yaml)"),
        flag("machine", "print which machine this is, as its history is called, and nothing else"),
        PROVIDER,
        ORCHESTRATOR,
        REPORTS,
    ),
    alone="scenario",
    plans=True,
    ends={**JUDGED, CHANGED: "something is worse than in the nights before, and not acknowledged"},
)
