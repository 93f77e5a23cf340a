"""The verbs of the command line. Run ``./invokew`` to see them."""

from __future__ import annotations

from bench.cli.commands import machines, measuring, project, recordings, studies, testbeds
from bench.cli.groups import Verbs
from testbed import resources

# Verbs that are about the repository itself, and not there where that is not.
OF_THE_REPOSITORY = (
    *("bundle", "docs", "lint", "reproduce", "schema"),
    *("test", "test.alone", "test.e2e", "test.long", "test.setup", "test.vm"),
)

VERBS = Verbs(
    modules=(measuring, studies, recordings, testbeds, machines, project),
    words={
        "bench": "scenario",
        "nightly": "scenario",
        "matrix": "scenario",
        "promise": "network",
        "places": "place",
        "backends": "backend",
        "up": "scenario",
        "figures": "run",
        "reproduce": "claim",
    },
    commanding={"exec": False, "capture": True, "ssh": False},
    left_out=() if resources.CHECKOUT else OF_THE_REPOSITORY,
)
