"""What people type, made into what invoke understands: words alone, commands, mistakes.

Functions of words alone. Invoke takes a positional argument for a required one, that is not repeated; takes
no command after a place without ``--``; and names neither the option nor what comes near it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from invoke.parser.argument import Argument
from invoke.tasks import Task

from testbed.nearest import nearest

DASHES = "--"
HELP = {"--help", "-h"}
EVERYWHERE = {*HELP, "--dry", "-R"}  # options of every verb


def as_options(words: Sequence[str], option: str, task: Task[Any]) -> list[str]:
    """Return a task's words with those that stand alone as values of one of its options.

    Raises ValueError if there are several, and the option takes one.
    """
    alone = _alone(words, task)
    if sum(alone) > 1 and options_of(task)[f"--{option}"].kind is not list:
        several = " and ".join(word for word, one in zip(words, alone, strict=True) if one)
        raise ValueError(f"one {option} at a time, not {several}")
    return [f"--{option}={word}" if one else word for word, one in zip(words, alone, strict=True)]


def places_first(words: Sequence[str], task: Task[Any]) -> list[str]:
    """Return a task's words with those first that it needs: invoke takes whatever is first for them.

    Raises ValueError for one that is missing, with what it is.
    """
    typed = {word.partition("=")[0] for word in split(words)[0]}
    known = options_of(task)
    needed = [one for one in task.get_arguments() if is_place(one)]
    needed = [
        one for one in needed if not any(known.get(word) and known[word].name == one.name for word in typed)
    ]
    alone = [index for index, one in enumerate(_alone(words, task)) if one][: len(needed)]
    if len(alone) < len(needed):
        missing = needed[len(alone)]
        raise ValueError(f"{task.name}: {str(missing.name).upper()} is missing: {missing.help}")
    first = [words[index] for index in alone]
    return [*first, *(word for index, word in enumerate(words) if index not in alone)]


def is_place(argument: Argument) -> bool:
    """Tell whether a verb needs it, as a word alone; invoke says so of what may be repeated, too."""
    return bool(argument.positional) and argument.kind is not list


def with_command(words: Sequence[str], task: Task[Any], by_option: bool = False) -> list[str]:
    """Return a task's words with ``--`` before the command: the second word that stands alone begins it.

    With ``by_option`` so does an option that is none of the task's, behind the first such word.
    """
    alone = [index for index, one in enumerate(_alone(words, task)) if one]
    further = alone[1:2]
    if by_option and alone:
        further += [index for index in _unknown(words, task) if index > alone[0]][:1]
    if not further:
        return list(words)
    return [*words[: min(further)], DASHES, *words[min(further) :]]


def verb_at(words: Sequence[str], core: Mapping[str, Argument]) -> int | None:
    """Return which word is the verb: the first that is no option of the program's, nor a value of one."""
    valued = {name for name, argument in core.items() if argument.takes_value and not argument.optional}
    for index, (before, word) in enumerate(zip(["", *words], words, strict=False)):
        if word == DASHES:
            return None
        if not word.startswith("-") and before not in valued:
            return index
    return None


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before and after a lone ``--``."""
    at = words.index(DASHES) if DASHES in words else len(words)
    return list(words[:at]), list(words[at + 1 :])


def check_options(words: Sequence[str], task: Task[Any]) -> None:
    """Raise ValueError, with what comes nearest, for an option that is none of the task's."""
    for index in _unknown(words, task):
        word, _, _ = words[index].partition("=")
        raise ValueError(f"{task.name}: no option {word}{meant(word, options_of(task))}")


def check_numbers(words: Sequence[str], task: Task[Any]) -> None:
    """Raise ValueError, with option and value, for what is no number where an option wants one."""
    for option, value, argument in _valued(words, task):
        try:
            argument.kind(value)
        except ValueError:
            kind = "a whole number" if argument.kind is int else "a number"
            raise ValueError(f"{option}: {value!r} is not {kind}") from None


def meant(word: str, known: Iterable[str]) -> str:
    """Return the known word that comes nearest, as a question to put behind a message; or nothing."""
    found = nearest(word, known)
    return f"; did you mean {found}?" if found else ""


def options_of(task: Task[Any]) -> dict[str, Argument]:
    """Return a task's options as they are typed, each with what takes it."""
    return {_typed(name): argument for argument in task.get_arguments() for name in argument.names if name}


def _typed(name: str) -> str:
    return f"--{name.replace('_', '-').strip('-')}" if len(name) > 1 else f"-{name}"


def _valued(words: Sequence[str], task: Task[Any]) -> Iterator[tuple[str, str, Argument]]:
    """Yield each option that has a value, with the value and what takes it."""
    known: Mapping[str, Argument] = options_of(task)
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word == DASHES:
            return
        option, equals, value = word.partition("=")
        argument = known.get(option)
        if argument is not None and argument.takes_value:
            yield option, value if equals else after, argument


def _unknown(words: Sequence[str], task: Task[Any]) -> Iterator[int]:
    """Yield which words, before ``--``, are options and none of the task's."""
    known = options_of(task)
    valued = {name for name, argument in known.items() if argument.takes_value}
    for index, (before, word) in enumerate(zip(["", *words], split(words)[0], strict=False)):
        if not word.startswith("-") or word == "-" or before in valued:
            continue
        option = word.partition("=")[0] if word.startswith(DASHES) else word[:2]
        letters = [] if word.startswith(DASHES) or option in valued else word[2:]  # as in -rj
        if not {option, *(f"-{letter}" for letter in letters)} <= known.keys() | EVERYWHERE:
            yield index


def _alone(words: Sequence[str], task: Task[Any]) -> list[bool]:
    """Tell of each word whether it stands alone: no option, no option's value, nothing behind ``--``."""
    valued = {name for name, argument in options_of(task).items() if argument.takes_value}
    end = words.index(DASHES) if DASHES in words else len(words)
    return [
        not word.startswith("-") and before not in valued and index < end
        for index, (before, word) in enumerate(zip(["", *words], words, strict=False))
    ]
