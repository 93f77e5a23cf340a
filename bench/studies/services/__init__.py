"""What do hints keep in a zone, and what does that cost? Services asked from three zones.

See docs/explanation/services-measured.md.
"""

from __future__ import annotations

from bench.console.verb import DURATION, MANY, choice, study_verb


def cases() -> list[str]:
    """Return the names of its cases."""
    from bench.studies.services import situations

    return [*situations.NAMES]


def modes() -> list[str]:
    """Return the modes of hints."""
    from edge.services.hints import MODES

    return [*MODES]


VERB = study_verb(
    "services",
    "Measure what a service's hints keep in a zone, and what that costs.",
    choice("case", MANY, "one case by its name; may be repeated (default: all)", cases),
    choice("mode", MANY, "off, auto, strict, close, nearest; may be repeated (default: all)", modes),
    choice(
        "quick",
        False,
        "less than a second each, and neither promises nor what happens meanwhile: two minutes",
    ),
    DURATION,
    alone="case",
)
