"""What people type, made into what invoke understands: words alone, commands, mistakes.

Functions of words alone. Invoke takes a positional argument for a required one, that is not repeated; takes
no command after a place without ``--``; and names neither the option nor what comes near it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bench.console.verb import Option, Verb
from testbed.registry import nearest

if TYPE_CHECKING:
    from invoke.parser.argument import Argument

DASHES = "--"
HELP = {"--help", "-h"}
EVERYWHERE = {*HELP, "--dry", "-R"}  # options of every verb


def as_options(argv: Sequence[str], option: str, verb: Verb) -> list[str]:
    """Return a verb's words with those that stand alone as values of one of its options.

    Raises ValueError if there are several, and the option takes one.
    """
    alone = _alone(argv, verb)
    if sum(alone) > 1 and verb.typed()[f"--{option}"].kind is not list:
        several = " and ".join(word for word, one in zip(argv, alone, strict=True) if one)
        raise ValueError(f"one {option} at a time, not {several}")
    return [f"--{option}={word}" if one else word for word, one in zip(argv, alone, strict=True)]


def places_first(argv: Sequence[str], verb: Verb) -> list[str]:
    """Return a verb's words with those first that it needs: invoke takes whatever is first for them.

    Raises ValueError for one that is missing, with what it is.
    """
    typed = {word.partition("=")[0] for word in split(argv)[0]}
    needed = [one for one in verb.places() if one.flag not in typed]
    alone = [index for index, one in enumerate(_alone(argv, verb)) if one][: len(needed)]
    if len(alone) < len(needed):
        missing = needed[len(alone)]
        raise ValueError(f"{verb.name}: {missing.name.upper()} is missing: {missing.help}")
    first = [argv[index] for index in alone]
    return [*first, *(word for index, word in enumerate(argv) if index not in alone)]


def with_command(argv: Sequence[str], verb: Verb, by_option: bool = False) -> list[str]:
    """Return a verb's words with ``--`` before the command: the second word that stands alone begins it.

    With ``by_option`` so does an option that is none of the verb's, behind the first such word.
    """
    alone = [index for index, one in enumerate(_alone(argv, verb)) if one]
    further = alone[1:2]
    if by_option and alone:
        further += [index for index in _unknown(argv, verb) if index > alone[0]][:1]
    if not further:
        return list(argv)
    return [*argv[: min(further)], DASHES, *argv[min(further) :]]


def verb_at(argv: Sequence[str], core: Mapping[str, Argument]) -> int | None:
    """Return which word is the verb: the first that is no option of the program's, nor a value of one."""
    valued = {name for name, argument in core.items() if argument.takes_value and not argument.optional}
    for index, (before, word) in enumerate(zip(["", *argv], argv, strict=False)):
        if word == DASHES:
            return None
        if not word.startswith("-") and before not in valued:
            return index
    return None


def split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before and after a lone ``--``."""
    at = argv.index(DASHES) if DASHES in argv else len(argv)
    return list(argv[:at]), list(argv[at + 1 :])


def check_options(argv: Sequence[str], verb: Verb) -> None:
    """Raise ValueError, with what comes nearest, for an option that is none of the verb's."""
    for index in _unknown(argv, verb):
        word, _, _ = argv[index].partition("=")
        raise ValueError(f"{verb.name}: no option {word}{meant(word, verb.typed())}")


def check_values(argv: Sequence[str], verb: Verb) -> None:
    """Raise ValueError, with the option, for a value that is missing, or no number where one is wanted."""
    for typed, value, option in _valued(argv, verb):
        if value is None:
            raise ValueError(f"{option.flag}: a value is missing")
        try:
            option.kind(value)
        except ValueError:
            kind = "a whole number" if option.kind is int else "a number"
            raise ValueError(f"{typed}: {value!r} is not {kind}") from None


def meant(word: str, known: Iterable[str]) -> str:
    """Return the known word that comes nearest, as a question to put behind a message; or nothing."""
    found = nearest(word, known)
    return f"; did you mean {found}?" if found else ""


def _valued(argv: Sequence[str], verb: Verb) -> Iterator[tuple[str, str | None, Option]]:
    """Yield each option that has a value, as it is typed, with the value, if one follows, and what it is."""
    known = verb.typed()
    for word, after in zip(argv, [*argv[1:], None], strict=False):
        typed, equals, value = word.partition("=")
        if not equals and not word.startswith(DASHES) and word[2:]:  # as in -r3
            typed, equals, value = word[:2], "=", word[2:]
        option = known.get(typed)
        if option is not None and option.takes_value:
            yield typed, value if equals else None if after in known else after, option


def _unknown(argv: Sequence[str], verb: Verb) -> Iterator[int]:
    """Yield which words, before ``--``, are options and none of the verb's."""
    known, valued = verb.typed(), verb.valued()
    for index, (before, word) in enumerate(zip(["", *argv], split(argv)[0], strict=False)):
        if not word.startswith("-") or word == "-" or before in valued:
            continue
        option = word.partition("=")[0] if word.startswith(DASHES) else word[:2]
        letters = [] if word.startswith(DASHES) or option in valued else word[2:]  # as in -rj
        if not {option, *(f"-{letter}" for letter in letters)} <= known.keys() | EVERYWHERE:
            yield index


def _alone(argv: Sequence[str], verb: Verb) -> list[bool]:
    """Tell of each word whether it stands alone: no option, no option's value, nothing behind ``--``."""
    valued = verb.valued()
    end = argv.index(DASHES) if DASHES in argv else len(argv)
    return [
        not word.startswith("-") and before not in valued and index < end
        for index, (before, word) in enumerate(zip(["", *argv], argv, strict=False))
    ]
