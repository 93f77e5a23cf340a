"""Does what was said and shown follow from what was recorded, and does it come out again?"""

from __future__ import annotations

from bench.console import values
from bench.console.statuses import HELD, JUDGED, VIOLATED
from bench.console.verb import REPORTS, Option, Verb, flag, many, place

BUNDLE = Verb(
    "bundle",
    "Make one archive to deposit: the source at its commit, the recordings, what they are, and digests.",
    "studies.reproduction.verbs:bundle",
    (
        place("to", "the archive, as in bundle.tar.xz"),
        many(
            "run",
            "a recording or a study of yours to put in besides: its directory or run id; may be repeated",
            values.runs,
        ),
        REPORTS,
    ),
    of_the_repository=True,
)

REPRODUCE = Verb(
    "reproduce",
    "Do the docs' claims come out again? Print what is expected beside what is observed.",
    "studies.reproduction.verbs:reproduce",
    (
        many("claim", "which; may be repeated (default: all that need no machines of their own)"),
        flag("recorded", "from the recordings that are kept, in seconds and without root"),
        flag("quick", "at a tenth of the rates, in five minutes"),
        flag("list_", "list the claims, with the commands that measure them"),
        Option("seed", 1, "of the order in which experiments are made"),
        REPORTS,
    ),
    alone="claim",
    ends={**JUDGED, HELD: "every claim came out again", VIOLATED: "one did not"},
    of_the_repository=True,
)
