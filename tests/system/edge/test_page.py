"""docs/tutorial/vxlan-by-misses.md: its commands are run again, and print what the page says they print.

What differs from run to run is not compared: times of day, how long something took, and when a lease ends.
Where the page has "..." other lines may be printed, too.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from testbed.access.place import Place
from testbed.assembly import assemble
from testbed.scenario import load
from testbed.testbed import Testbed
from tests.paths import ROOT

PAGE = ROOT / "docs" / "tutorial" / "vxlan-by-misses.md"
LEFT_OUT = "..."
# What is not the same each time, and what stands for it.
VARYING = (
    (re.compile(r"^\d\d:\d\d:\d\d\.\d{3}"), "TIME"),
    (re.compile(r"\b\d+\.\d+ ms\b"), "N ms"),
    (re.compile(r"time[ =]\d+(\.\d+)? ?ms|time N ms"), "time"),
    (re.compile(r"mdev = [\d./]+ ms|mdev = [\d./]*N ms"), "mdev"),
    (re.compile(r"ends in \d+ s"), "ends in N s"),
    (re.compile(r"\b(REACHABLE|DELAY|STALE|PROBE)\b"), "KNOWN"),
    # What kernel and iproute2 show besides of a device differs from version to version.
    (re.compile(r" (promiscuity|qlen|ttl auto) .*"), ""),
    (re.compile(r"^\d+: "), "N: "),
)


class Command(NamedTuple):
    """A command of the page, and what it says that is printed."""

    words: list[str]
    output: list[str]


def commands() -> Iterator[Command]:
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        for told in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *output = told.rstrip("\n").split("\n")
            yield Command(shlex.split(line.replace("$PWD", str(ROOT))), output)


def normal(lines: list[str]) -> list[str]:
    """Return lines without what varies, in an order that does not depend on the kernel's tables."""
    found = []
    for line in lines:
        for pattern, word in VARYING:
            line = pattern.sub(word, line)
        if line.strip():
            found.append(line.rstrip())
    return sorted(found)


class Reader:
    """Does what the page says."""

    def __init__(self) -> None:
        self.testbed: Testbed | None = None

    def do(self, command: Command) -> list[str]:
        program, verb, *words = command.words
        assert program == "./invokew"
        match verb:
            case "up":
                assert words[0] == "--scenario"
                changes = [words[at + 1] for at, word in enumerate(words) if word == "--set"]
                self.testbed = assemble(load(ROOT / words[1], changes), "netns", "cni")
                self.testbed.up()
            case "down":
                self.down()
            case "exec":
                assert words[1] == "--"
                return self.place(words[0]).run(words[2:], check=False).stdout.split("\n")
            case _:
                pytest.fail(f"the page has a verb that nobody runs again: {verb}")
        return []

    def place(self, name: str) -> Place:
        assert self.testbed is not None
        return self.testbed.nodes[name] if name in self.testbed.nodes else self.testbed.place(name)

    def down(self) -> None:
        if self.testbed is not None:
            self.testbed.down()
        self.testbed = None


@pytest.mark.long(one_in=0)
def test_the_page_shows_what_its_commands_print(etcd: str) -> None:
    reader = Reader()
    try:
        for command in commands():
            printed, shown = normal(reader.do(command)), normal(command.output)
            if LEFT_OUT in shown:
                shown.remove(LEFT_OUT)
                assert not Counter(shown) - Counter(printed), command.words
            else:
                assert printed == shown, command.words
    finally:
        reader.down()


def test_the_page_has_commands_of_each_step() -> None:
    verbs = [command.words[1] for command in commands()]
    assert verbs.count("up") == verbs.count("down") == 2
    assert verbs.count("exec") >= 12
