"""A verb as data: its options, what does it, and how it ends.

Help, completion, what invoke is told and what is refused are made of it. What does a verb is named, and
imported when it is run: a list, a mistake or a pressed key costs none of it, nor a package of others.
"""

from __future__ import annotations

from typing import NamedTuple

from bench.console import statuses, values
from bench.console.statuses import STUDY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The short form of an option, whichever verb has it; h, l, R and V are the program's own (bench.cli.program).
SHORT = {
    "all_": "a",
    "duration": "d",
    "enforcement": "e",
    "interface": "i",
    "json": "j",
    "kubeconfig": "k",
    "name": "n",
    "orchestrator": "o",
    "provider": "p",
    "repetitions": "r",
    "scenario": "s",
    "to": "t",
}
MANY: tuple[str, ...] = ()  # the default of an option that may be repeated


class Option(NamedTuple):
    """An option of a verb; or, as a place, a word that it needs."""

    name: str  # of the function's parameter
    default: str | int | float | tuple[str, ...] | None  # its type is the value's; None: a text, or None
    help: str
    values: Callable[[], list[str]] = values.nothing  # for completion
    place: bool = False
    into: str = ""  # the parameter, a mapping, that has it if it was given; empty: it is one itself

    @property
    def kind(self) -> type:
        """The type of its value; a list's members are texts."""
        if self.default is None:
            return str
        return list if isinstance(self.default, tuple) else type(self.default)

    @property
    def takes_value(self) -> bool:
        """Whether a value follows it."""
        return self.kind is not bool

    @property
    def flag(self) -> str:
        """How it is typed."""
        return f"--{self.name.strip('_').replace('_', '-')}"

    @property
    def short(self) -> str:
        """Its letter; empty if it has none."""
        return "" if self.place else SHORT.get(self.name, "")


class Verb(NamedTuple):
    """A verb: a function below ``bench``, as module:name, that gets the options and returns a status."""

    name: str
    about: str
    function: str
    options: tuple[Option, ...] = ()  # with JSON the function gets as ``document`` one to fill in
    alone: str = ""  # the option that words alone are values of; many, where it takes many
    plans: bool = False  # with --dry it is called all the same, as ``dry``, and says what would be done
    study: str = ""  # what the function is told as ``name``
    command: str = ""  # a command follows a place: begun by a "word", or also by an "option" of its own
    ends: statuses.Ends = statuses.DONE
    of_the_repository: bool = False  # not there where that is not
    runs_programs: bool = False  # the function gets invoke's context, and ends as the programs do

    def typed(self) -> dict[str, Option]:
        """Return its options as they are typed, in each form."""
        short = {f"-{option.short}": option for option in self.options if option.short}
        return {option.flag: option for option in self.options} | short

    def valued(self) -> set[str]:
        """Return those of them that a value follows."""
        return {form for form, option in self.typed().items() if option.takes_value}

    @property
    def choices(self) -> tuple[str, ...]:
        """What a study alone may be asked for."""
        return tuple(option.flag.removeprefix("--") for option in self.options if option.into == "choices")

    @property
    def flags(self) -> tuple[str, ...]:
        """Those of the choices that are there or not."""
        return tuple(name for name in self.choices if f"--{name}" not in self.valued())

    def places(self) -> list[Option]:
        """Return the words that it needs, in order."""
        return [option for option in self.options if option.place]


def flag(name: str, about: str) -> Option:
    """Return an option that is there or not."""
    return Option(name, False, about)


def text(name: str, about: str, known: Callable[[], list[str]] = values.nothing, into: str = "") -> Option:
    """Return an option that is a text; empty where it was not given."""
    return Option(name, "", about, known, into=into)


def many(name: str, about: str, known: Callable[[], list[str]] = values.nothing) -> Option:
    """Return an option that may be repeated."""
    return Option(name, MANY, about, known)


def place(name: str, about: str, known: Callable[[], list[str]] = values.nothing) -> Option:
    """Return a word that a verb needs."""
    return Option(name, "", about, known, place=True)


SCENARIO = "a scenario's name or file, or a recording of one"
SET = many("set_", "override one field, as in flows[0].duration=5; may be repeated", values.settings)
SCALE = Option("scale", 1.0, "multiply every rate, as in 0.1")
DURATION = text(
    "duration", "seconds that the traffic takes, all of it in proportion (default: the scenario's)"
)
PROVIDER = Option(
    "provider",
    "netns",
    "where nodes come from: netns, ssh:INVENTORY, ssh with addresses in the scenario, or vagrant",
    values.providers,
)
ORCHESTRATOR = Option(
    "orchestrator", "cni", f"what runs the pods: {', '.join(values.orchestrators())}", values.orchestrators
)
REPORTS = Option("reports", "reports", "directory of the recordings")
JSON = flag("json", "one JSON document on standard output; what people are told goes to standard error")
SHEET = (
    text(
        "preset",
        "draw for a column (3.5in), a page (7in) or a slide (10in, in text of 12 points)",
        into="size",
    ),
    text("width", "how wide figures are, as in 3.5in, 89mm, 8.9cm or 252pt", into="size"),
    text("font_size", "points of their text, as in 8", into="size"),
    text("format", "which of svg, pdf, png, as in pdf,png (default: all)", into="size"),
)
RUN = (SET, SCALE, PROVIDER, ORCHESTRATOR, REPORTS)
RESUME = text(
    "resume", "go on with an interrupted study, as it was begun: its directory or name", values.unfinished
)
OF_A_STUDY = (*RUN, JSON, RESUME)
SCENARIOS = many("scenario", f"{SCENARIO}; may be repeated (default: the paper's two)", values.scenarios)


def choice(
    name: str,
    default: str | int | tuple[str, ...],
    about: str,
    known: Callable[[], list[str]] = values.nothing,
) -> Option:
    """Return an option that a study alone has."""
    return Option(name, default, about, known, into="choices")


def study_verb(name: str, about: str, *own: Option, alone: str, ends: statuses.Ends = STUDY) -> Verb:
    """Return the verb of a study: with its own options it takes those of every study."""
    return Verb(
        name, about, "studies.verb:run", (*own, *OF_A_STUDY), alone, plans=True, study=name, ends=ends
    )
