"""What was recorded: shown, compared, kept, given away."""

from __future__ import annotations

from pathlib import Path

from invoke.context import Context

from bench.cli import exits
from bench.cli.commands.options import JSON, REPORTS, SHEET, task


@task(
    help={
        **REPORTS,
        **SHEET,
        **JSON,
        "run": "a recording or a study: its directory, run id, packed file, or latest",
        "all_": "those of every recording and study, packed or not",
        "check": "with --all: write nothing, and name each file that is not what follows from its recording",
    },
)
def figures(
    _context: Context,
    run: str = "",
    all_: bool = False,
    check: bool = False,
    preset: str = "",
    width: str = "",
    font_size: str = "",
    format: str = "",
    reports: str = "reports",
    json: bool = False,
) -> None:
    """Make samples, summary, figures and report again from a recording alone; figures of other sizes, too."""
    from bench.cli.verbs import reproduction

    asked = preset, width, font_size, format
    exits.ends_with_status(reproduction.figures)(run, all_, check, Path(reports), json, asked)


@task(
    positional=["one", "other"],
    help={
        **REPORTS,
        **SHEET,
        **JSON,
        "one": "a recording, a matrix, or a directory of them, packed or not: its path or name",
        "other": "the same of what is compared with it",
        "across_machines": "compare what was measured on different machines, too",
    },
)
def compare(
    _context: Context,
    one: str,
    other: str,
    across_machines: bool = False,
    preset: str = "",
    width: str = "",
    font_size: str = "",
    format: str = "",
    json: bool = False,
    reports: str = "reports",
) -> None:
    """Compare two runs: is each flow's mean the same, better or worse? And draw both in one figure."""
    from bench.cli.verbs import compare as verb

    asked = preset, width, font_size, format
    exits.ends_with_status(verb.compare)(one, other, across_machines, json, Path(reports), asked)


@task(
    positional=["run"],
    help={
        **REPORTS,
        "run": "a recording's directory or run id",
        "to": "the directory that gets recording.tar.xz and summary.json",
    },
)
def pack(_context: Context, run: str, to: str, reports: str = "reports") -> None:
    """Pack a recording into one file, without names of machines and people, to be kept or given away."""
    from bench.cli.verbs import experiments

    exits.ends_with_status(experiments.pack)(run, to, Path(reports))


@task(
    iterable=["run"],
    help={
        **REPORTS,
        "to": "the archive, as in bundle.tar.xz",
        "run": "a recording or a study of yours to put in besides: its directory or run id; may be repeated",
    },
)
def bundle(_context: Context, to: str, run: list[str], reports: str = "reports") -> None:
    """Make one archive to deposit: the source at its commit, the recordings, what they are, and digests."""
    from bench.cli.verbs import reproduction

    exits.ends_with_status(reproduction.bundle)(to, run, Path(reports))


@task(
    iterable=["claim"],
    help={
        **REPORTS,
        "claim": "which; may be repeated (default: all that need no machines of their own)",
        "recorded": "from the recordings that are kept, in seconds and without root",
        "quick": "at a tenth of the rates, in five minutes",
        "list_": "list the claims, with the commands that measure them",
        "seed": "of the order in which experiments are made",
    },
)
def reproduce(
    _context: Context,
    claim: list[str],
    recorded: bool = False,
    quick: bool = False,
    list_: bool = False,
    seed: int = 1,
    reports: str = "reports",
) -> None:
    """Do the docs' claims come out again? Print what is expected beside what is observed."""
    from bench.cli.verbs import reproduction

    run = exits.ends_with_status(reproduction.reproduce)
    run(claim, recorded, quick, list_, seed, Path(reports))
