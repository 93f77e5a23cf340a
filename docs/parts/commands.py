"""All verbs of the command line, with their options, as the command line itself knows them."""

from __future__ import annotations

import inspect
from typing import Any

from invoke.parser.argument import Argument
from invoke.tasks import Task

from bench.cli.tasks import VERBS
from docs.parts.table import table

VALUES: dict[Any, str] = {int: "whole number", float: "number", bool: "", list: "text; may be repeated"}
# What is no default, but that there is none.
NONE = (None, "", False, inspect.Parameter.empty)


def render() -> str:
    """Return a section for each group of verbs, and in it one for each verb, as Markdown."""
    return "\n".join(
        "\n".join([f"## {title.rstrip('.')}\n", *map(_section, tasks)]) for title, tasks in VERBS.groups()
    )


def _section(task: Task[Any]) -> str:
    alone = VERBS.alone(task.name)
    rows = [
        [_named(argument, alone), VALUES.get(argument.kind, "text"), _default(argument), argument.help or ""]
        for argument in task.get_arguments()
    ]
    listed = table(["Option", "Value", "Default", "Means"], rows) if rows else ""
    return f"### {task.name}\n\n{inspect.cleandoc(task.__doc__ or '')}\n\n{listed}"


def _named(argument: Argument, alone: str | None) -> str:
    name = (argument.name or "").strip("_").replace("_", "-")
    if _must(argument):
        return f"`{name.upper()}`"
    return f"`--{name}`, or a word alone" if argument.name == alone else f"`--{name}`"


def _must(argument: Argument) -> bool:
    """Tell whether it must be given; to invoke so must what may be repeated, without being asked for."""
    return bool(argument.positional) and argument.kind is not list


def _default(argument: Argument) -> str:
    if _must(argument):
        return "must be given"
    return f"`{argument.default}`" if argument.default not in NONE else ""
