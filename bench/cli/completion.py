"""What a shell completes: verbs, options, scenarios, networks, run ids, testbeds, and what is in those.

A shell waits for this at each press of a key, so it is started by its path and imports nothing but Python's
standard library. Which verbs and options there are it reads from their source, and not from something
kept, which could be older. Of testbeds it knows those made of namespaces; to ask others takes too long.
"""

from __future__ import annotations

import ast
import glob
import json
import os
import re
import shlex
import sys

TYPE_CHECKING = False  # typing takes a while to import
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
HOME = os.path.dirname(os.path.dirname(HERE))
COMMANDS = os.path.join(HERE, "commands")
OPTIONS = os.path.join(COMMANDS, "options.py")
VERBS = os.path.join(HERE, "tasks.py")
SCRIPTS = os.path.join(HERE, "shells")
SCENARIOS = os.path.join(HOME, "scenarios")
CHECKOUT = os.path.exists(os.path.join(HOME, "invokew"))
# As testbed.providers.netns.processes has them.
FIRST_PROCESS = "testbed/providers/netns/init.py"
STATE = "/run/testbed/state.json"

BEFORE = ("--dry", "--help", "--list", "--version")  # options before a verb
AFTER = ("--dry", "--help")  # of every verb


class Verb:
    """What the source says of one verb: which options it has, and which words alone."""

    def __init__(self, function: ast.FunctionDef, alone: dict[str, str], short: dict[str, str]) -> None:
        said = _keywords(function.decorator_list)
        arguments = function.args.args[1:]
        required = len(arguments) - len(function.args.defaults)
        kinds = {one.arg: ast.unparse(one.annotation) if one.annotation else "" for one in arguments}
        self.name: str = said.get("name") or function.name
        self.options = {_flag(name): name for name in kinds}
        first = [one.arg for one in arguments[:required] if "list" not in kinds[one.arg]]
        self.positional: list[str] = said.get("positional", first)
        self.short = {f"-{short[name]}": name for name in kinds if name in short.keys() - self.positional}
        self.named = self.options | self.short
        self.valued = {option for option, name in self.named.items() if kinds[name] != "bool"}
        self.alone = alone.get(self.name, "")


def verbs() -> dict[str, Verb]:
    """Return every verb by its name, as the source has them."""
    program = _parsed(VERBS)
    alone = next(_values_of(program, "words"))
    short = next(_values_of(_parsed(OPTIONS), "SHORT"))
    left_out = () if CHECKOUT else next(_values_of(program, "OF_THE_REPOSITORY"))
    found = [
        Verb(node, alone, short)
        for file in sorted(os.listdir(COMMANDS))
        if file.endswith(".py")
        for node in _parsed(os.path.join(COMMANDS, file)).body
        if isinstance(node, ast.FunctionDef) and any(_is_task(one) for one in node.decorator_list)
    ]
    return {verb.name: verb for verb in found if verb.name not in left_out}


def completions(words: list[str]) -> list[str]:
    """Return what the last of a line's words, after the program's name, may become."""
    joined = _joined(words)
    found = _completions(joined)
    if not words or joined[-1] == words[-1]:
        return found
    option = f"{joined[-1].partition('=')[0]}="  # which to bash is a word before
    return [one.removeprefix(option) for one in found]


def _completions(words: list[str]) -> list[str]:
    *before, word = words or [""]
    known = verbs()
    place = next((at for at, one in enumerate(before) if one in known), None)
    if place is None:
        return _beginning(BEFORE if word.startswith("-") else list(known), word)
    verb, typed = known[before[place]], before[place + 1 :]
    if typed and typed[-1] in verb.valued:
        return _beginning(values(verb, verb.named[typed[-1]]), word)
    if word.startswith("-"):
        option, equals, value = word.partition("=")
        if not equals:
            return _beginning([*verb.options, *AFTER], word)
        of = verb.options.get(option)
        return [f"{option}={one}" for one in _beginning(values(verb, of), value)] if of else []
    number = sum(not one.startswith("-") for one in _without_values(typed, verb))
    if number < len(verb.positional):
        return _beginning(values(verb, verb.positional[number]), word)
    return _beginning(values(verb, verb.alone), word) if verb.alone else []


def values(verb: Verb, name: str) -> list[str]:
    """Return what an option of a verb, or a word of its own, may be, as far as that is known."""
    fixed = {
        "profile": ["ceiling", "floor", "latency", "robust"],
        "orchestrator": ["cni", "kubernetes"],
        "provider": ["netns", "ssh", "vagrant"],
        "enforcement": networks(),
        "network": networks(),
        "shell": shells(),
        "resume": unfinished(),
    }
    if name in fixed:
        return fixed[name]
    if name in ("scenario", "from_"):
        return scenarios()
    if name in ("run", "one", "other", "replay"):
        return runs()
    if name == "place" and verb.name == "places":
        return [_stem(file) for file in sorted(glob.glob(os.path.join(SCENARIOS, "places", "*.yaml")))]
    if name == "place":
        return [place for state in testbeds().values() for place in state["places"]]
    kinds = {"node": "node", "source": "pod", "destination": "pod"}
    if name in kinds:
        return [
            place
            for state in testbeds().values()
            for place, where in state["places"].items()
            if where["kind"] == kinds[name]
        ]
    if name == "cluster":
        return [cluster for state in testbeds().values() for cluster in state["clusters"]]
    if name == "name" and verb.name == "study":
        return ["backends", "matrix", "places", "promise"]
    if name == "name" and verb.name not in ("new", "up"):
        return list(testbeds())
    return []


def scenarios() -> list[str]:
    """Return the scenarios that are found by their names."""
    folders = (SCENARIOS, os.path.join(SCENARIOS, "examples"))
    return [_stem(file) for folder in folders for file in sorted(glob.glob(os.path.join(folder, "*.yaml")))]


def networks() -> list[str]:
    """Return the networks that are found by their names."""
    return [_stem(file) for file in sorted(glob.glob(os.path.join(SCENARIOS, "networks", "*.yaml")))]


def runs() -> list[str]:
    """Return the recordings and studies below ``reports``, the last first."""
    made = [one.name for one in _entries("reports") if re.fullmatch(r"\d{8}T\d{6}Z-[^.]+", one.name)]
    kept = [f"reports/reference/{entry.name}" for entry in _entries("reports/reference")]
    return [*(["latest"] if os.path.lexists("reports/latest") else []), *sorted(made)[::-1], *sorted(kept)]


def unfinished() -> list[str]:
    """Return the recordings and studies that can be gone on with."""
    return sorted(entry.name for entry in _entries("reports") if entry.name.endswith(".unfinished"))


def shells() -> list[str]:
    """Return the shells that there is a script for."""
    return sorted(file.removesuffix(".txt") for file in os.listdir(SCRIPTS))


def testbeds() -> dict[str, dict[str, dict[str, dict[str, str]]]]:
    """Return what the user's testbeds hold, by their names."""
    found = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")[:-1]
            if len(words) > 2 and words[-2].endswith(FIRST_PROCESS) and "." not in words[-1]:
                with open(f"/proc/{process}/root{STATE}", encoding="utf-8") as state:
                    found[words[-1]] = json.load(state)
        except (OSError, ValueError):  # it has ended, is another's, or is coming
            continue
    return found


def script(shell: str, names: Sequence[str]) -> str:
    """Return what lets a shell complete these commands. Raises LookupError for another shell."""
    if shell not in shells():
        raise LookupError(f"completion: no script for {shell!r}; there are: {', '.join(shells())}")
    with open(os.path.join(SCRIPTS, f"{shell}.txt"), encoding="utf-8") as file:
        return file.read().replace("NAMES", " ".join(names))


def main(arguments: Sequence[str]) -> None:
    """Answer a shell: ``--complete -- PROGRAM WORD ...``."""
    words = list(arguments[2:])
    if len(words) == 1:  # a whole line, as invoke's own scripts hand it over
        words = _split(words[0])
    print("\n".join(completions(words[1:])))  # noqa: T201 (a shell reads it)


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # a quotation that has not ended
        return line.split()


def _joined(words: list[str]) -> list[str]:
    """Return words with ``--option=value`` in one, where bash makes three of it."""
    found: list[str] = []
    for word in words:
        if word == "=" and found and found[-1].startswith("--"):
            found[-1] += "="
        elif found and found[-1].startswith("--") and found[-1].endswith("="):
            found[-1] += word
        else:
            found.append(word)
    return found


def _without_values(words: list[str], verb: Verb) -> list[str]:
    return [word for before, word in zip(["", *words], words) if before not in verb.valued]  # noqa: B905


def _beginning(known: Sequence[str], word: str) -> list[str]:
    return [one for one in known if one.startswith(word)]


def _parsed(path: str) -> ast.Module:
    with open(path, encoding="utf-8") as source:
        return ast.parse(source.read())


def _values_of(module: ast.Module, name: str) -> Iterator[Any]:
    """Yield what a name is given, as a constant or as an argument."""
    for node in ast.walk(module):
        if isinstance(node, ast.keyword) and node.arg == name:
            yield ast.literal_eval(node.value)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            yield ast.literal_eval(node.value)


def _is_task(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(named, ast.Name) and named.id == "task"


def _keywords(decorators: list[ast.expr]) -> dict[str, Any]:
    return {
        keyword.arg: ast.literal_eval(keyword.value)
        for decorator in decorators
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
        if keyword.arg in ("name", "positional")
    }


def _flag(name: str) -> str:
    return f"--{name.strip('_').replace('_', '-')}"


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(".yaml")


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        return [entry for entry in os.scandir(directory) if entry.is_dir()]
    except OSError:
        return []


if __name__ == "__main__":
    main(sys.argv[1:])
