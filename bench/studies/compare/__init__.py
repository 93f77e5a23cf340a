"""Is one of two runs better than the other, and is it so in every flow and phase?"""

from __future__ import annotations

from bench.console import values
from bench.console.statuses import COMPARED
from bench.console.verb import JSON, REPORTS, SHEET, Verb, flag, place

VERB = Verb(
    "compare",
    "Compare two runs: is each flow's mean the same, better or worse? And draw both in one figure.",
    "studies.compare.verb:compare",
    (
        place(
            "one",
            "a recording, a matrix, or a directory of them, packed or not: its path or name",
            values.runs,
        ),
        place("other", "another one, to be compared with it", values.runs),
        flag("across_machines", "compare what was measured on different machines, too"),
        *SHEET,
        JSON,
        REPORTS,
    ),
    ends=COMPARED,
)
