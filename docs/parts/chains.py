"""``docs/reference/chains.md``: what became of chains of Debian's reference plugins.

It is made of a record in which `python -m tests.system.plugin.orders` writes what became of each: a list has
a letter for each enforcement, and each letter is an outcome.
"""

from __future__ import annotations

import json
import platform
import re
import string
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from docs.parts.table import table
from testbed.resources import HOME

RECORD = HOME / "docs" / "chains.json"
FILE = HOME / "docs" / "reference" / "chains.md"
ENFORCEMENTS = ("none", "pod", "node")
MAINS = ("bridge", "ptp", "macvlan")
CONCORDE, WORKS, MISSING = "concorde", "works", "-"
PACKAGE = "containernetworking-plugins"

Record = dict[str, Any]

HEAD = """# Chains tried

<!-- Made of docs/chains.json by .venv/bin/python -m tests.system.plugin.orders, which tries what that lacks;
what is changed here by hand is lost. -->

A pod was brought up by each of these lists of Debian's reference plugins, {plugins}, on Linux {linux}, in
every order of Concorde with the others, also before the plugin that makes the interface. It *works* if

- the pod reaches its gateway, a pod beside it and another node, and they reach it, also by a port of the
  node (`portmap`);
- its packets are in its class on the uplink (`node`);
- nothing it sends from a foreign address or hardware address arrives, and the guard is at the node's end of
  its interface, whatever redirects its packets;
- CHECK finds nothing, `reconcile` and `rebuild` change nothing, and DEL leaves nothing.

What does not is refused by STATUS and ADD with the words below, and so by `concorde examine`, unless it fails
without Concorde, too. `plugins[n]` is a place in the list, the first being 0.
"""


def read() -> Record:
    """Return the record; a new one where there is none."""
    if RECORD.exists():
        found: Record = json.loads(RECORD.read_text(encoding="utf-8"))
        return found
    asked = ["dpkg-query", "--show", "--showformat=${Version}", PACKAGE]
    version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return {"plugins": f"{PACKAGE} {version}", "linux": platform.release(), "outcomes": [WORKS], "lists": {}}


def note(record: Record, plugins: Sequence[str], enforcement: str, outcome: str) -> None:
    """Write down what became of a list; whichever place in it that names, it is one outcome."""
    outcomes, name = record["outcomes"], ", ".join(plugins)
    outcome = re.sub(r"\[\d+\]", "[n]", outcome)
    if outcome not in outcomes:
        outcomes.append(outcome)
    letters = list(record["lists"].get(name, MISSING * len(ENFORCEMENTS)))
    letters[ENFORCEMENTS.index(enforcement)] = string.ascii_letters[outcomes.index(outcome)]
    record["lists"][name] = "".join(letters)


def noted(record: Record, plugins: Sequence[str], enforcement: str) -> bool:
    """Return whether it was tried."""
    letters = record["lists"].get(", ".join(plugins), MISSING * len(ENFORCEMENTS))
    return bool(letters[ENFORCEMENTS.index(enforcement)] != MISSING)


def write(record: Record) -> None:
    """Write record and page."""
    RECORD.write_text(json.dumps(record, indent=0) + "\n", encoding="utf-8")
    FILE.write_text(render(record), encoding="utf-8")


def render(record: Record) -> str:
    """Return the page."""
    rows: dict[tuple[str, ...], list[str]] = {}
    longer = []
    for name, letters in record["lists"].items():
        plugins = name.split(", ")
        main = next((kind for kind in plugins if kind in MAINS), CONCORDE)
        others = tuple(sorted(kind for kind in plugins if kind not in (CONCORDE, main)))
        if len(others) > 2:
            longer.append([name, *(letter.replace(MISSING, "") for letter in letters)])
        else:
            rows.setdefault((main, *others), []).append(letters)
    found = [
        [main, ", ".join(others) or "nothing", str(len(each)), *_cells(each)]
        for (main, *others), each in sorted(rows.items(), key=lambda row: _order(row[0]))
    ]
    outcomes = zip(string.ascii_letters, record["outcomes"], strict=False)
    return "\n".join(
        [
            HEAD.format(plugins=record["plugins"], linux=record["linux"]),
            table(("Outcome", ""), [[letter, outcome] for letter, outcome in outcomes]),
            "How many of the orders had which outcome, by enforcement:\n",
            table(("Interface by", "with", "Orders", *ENFORCEMENTS), found),
            "## Longer ones, at random\n",
            table(("Plugins in their order", *ENFORCEMENTS), longer),
        ]
    )


def _cells(lists: Sequence[str]) -> list[str]:
    """Return how often each outcome came, of each enforcement."""
    return [_counted(Counter(letters)) for letters in zip(*lists, strict=True)]


def _counted(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{outcomes[letter]} {letter}" for letter in sorted(outcomes) if letter != MISSING)


def _order(row: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
    mains = (*MAINS, CONCORDE)
    return mains.index(row[0]), len(row), row
