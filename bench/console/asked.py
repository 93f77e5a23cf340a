"""What the options of a verb ask for, as one record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NotRequired, TypedDict, Unpack

from pydantic import ValidationError

from bench import generators  # noqa: F401 - they have a say in what a scenario may ask for
from bench.recording import directory
from bench.recording.records import Request, StudyRequest
from testbed.scenario.faults import explained

TYPED = {"overrides": "set", "kubeconfigs": "kubeconfig"}  # what a field is called that has another option
PAPER = ("contmec", "kubernetes")  # figs. 13 and 14: what is run if nothing is asked for
LONGEST = 86_400  # seconds, as of one transfer


class Options(TypedDict):
    """The options that everything has that measures."""

    set_: Sequence[str]
    scale: float | str  # bench, and nothing else, takes a text: auto, or a number
    duration: NotRequired[str]  # seconds of traffic; empty: as the scenario says
    provider: str
    orchestrator: str
    reports: str


def request(scenario: str, kubeconfigs: Sequence[str], **options: Unpack[Options]) -> Request:
    """Return what is asked for of one run. Raises LookupError for what is no text, or no number.

    ``latest`` is named by what it is now: later it will be another.
    """
    if scenario == directory.LATEST:
        scenario = directory.followed(Path(options["reports"]) / scenario).name
    with _understood():
        return Request(scenario=scenario, kubeconfigs=tuple(kubeconfigs), **_frozen(options))


def study(
    name: str,
    choices: Mapping[str, Sequence[str]],
    kubeconfigs: Sequence[str] = (),
    **options: Unpack[Options],
) -> StudyRequest:
    """Return what is asked for of a study. Raises LookupError."""
    chosen = {choice: tuple(values) for choice, values in choices.items() if values}
    with _understood():
        return StudyRequest(study=name, choices=chosen, kubeconfigs=tuple(kubeconfigs), **_frozen(options))


def overrides(enforcement: str, repetitions: str | None) -> list[str]:
    """Return what options of their own override in a scenario, as for ``--set``. Raises LookupError."""
    found = [f"enforcement={enforcement}"] if enforcement else []
    if repetitions is None:
        return found
    return [*found, f"measurement.repetitions={times('--repetitions', repetitions)}"]


AUTO = "auto"  # the scale that a calibration finds


def scale(text: float | str) -> tuple[float, bool]:
    """Return the factor for rates that is asked for, and whether a calibration is to find it.

    Raises LookupError.
    """
    if text == AUTO:
        return 1.0, True
    try:
        return float(text), False
    except ValueError:
        raise LookupError(f"--scale: {text!r} is neither a number nor {AUTO}") from None


def retries(count: int) -> int:
    """Return how many further runs there may be. Raises LookupError for less than none."""
    if count < 0:
        raise LookupError(f"--retry: must be at least 0, not {count}")
    return count


def times(option: str, text: str) -> int:
    """Return how often something is to be done. Raises LookupError for what is no such number."""
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        raise LookupError(f"{option}: must be a positive integer, not {text!r}")
    return int(text)


def refuse_others(given: Request | StudyRequest, nothing: Request | StudyRequest, more: bool = False) -> None:
    """Raise LookupError if anything is asked for but to go on: it goes on as it was begun."""
    if given != nothing or more:
        raise LookupError("--resume: the run goes on as it was begun; leave out all but --reports")


def _frozen(options: Options) -> Any:
    duration = options.get("duration", "")
    lasting = seconds("--duration", duration) if duration else None
    rest = {name: value for name, value in options.items() if name != "set_"}
    return {**rest, "overrides": tuple(options["set_"]), "duration": lasting}


def seconds(option: str, text: str) -> int:
    """Return how many seconds something takes. Raises LookupError for what is no such number."""
    if not re.fullmatch("0*[1-9][0-9]{0,4}", text) or int(text) > LONGEST:
        raise LookupError(f"{option}: must be an integer from 1 to {LONGEST} (seconds), not {text!r}")
    return int(text)


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        (field, *below), text = explained(error)[0]
        option = below[0] if field == "choices" else TYPED.get(str(field), field)
        raise LookupError(f"--{option}: {text}") from None
