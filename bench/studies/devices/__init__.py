"""What does a way to a device cost, and what does it keep? A device in a private network, by each way.

See docs/explanation/devices-measured.md.
"""

from __future__ import annotations

from bench.console.verb import DURATION, MANY, choice, study_verb


def names() -> list[str]:
    """Return the names of the ways to a device."""
    from bench.studies.devices import ways

    return [*ways.NAMES]


VERB = study_verb(
    "devices",
    "Measure the ways to a device in a private network: what each costs, and what promises are worth there.",
    choice("way", MANY, "one way by its name; may be repeated (default: all)", names),
    choice("part", MANY, "ways, handlers, clients, promises; may be repeated (default: all)"),
    choice("repetitions", "", "how often each way is measured (default: 5)"),
    choice("seed", "", "of the order in which ways take turns (default: 0)"),
    choice("quick", False, "once, and shorter, without clients and promises: a minute"),
    DURATION,
    alone="way",
)
