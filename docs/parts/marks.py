"""What a page says to the machinery around it, in HTML comments that no reader sees.

``<!-- here: NAME -->`` is the place of something that is made of the code. Before a block of commands:

* ``<!-- run by: TESTS -->``: these run its verbs already, as in ``tests/FILE.py``;
* ``<!-- run: long -->``: it takes more than seconds, so only the long tests run it;
* ``<!-- not run: REASON -->``: no test can.

A block without a mark is run by the default tests. ``<!-- all ... -->`` is of all blocks of a page.
Before a block of anything else ``<!-- file: NAME -->`` makes it a file that the page's commands find.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

HERE = re.compile(r"^<!-- here: ([a-z-]+)((?: [\w./-]+)*) -->$", re.MULTILINE)
BLOCK = re.compile(
    r"(?:^ *<!-- (?P<mark>run by|run|not run|file): (?P<words>[^\n]+?) -->\n\n?)?"
    r"^(?P<indent> *)```(?P<language>console|sh|python)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
ALL = re.compile(r"^<!-- all (?P<mark>run by|not run): (?P<words>[^\n]+?) -->$", re.MULTILINE)
FILE = re.compile(r"^<!-- file: (\S+) -->\n\n?```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_RUN = re.compile(r"^( *)<!-- (?:all )?not run: ([^\n]+?) -->$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of commands, or of Python, on a page."""

    line: int  # of the page, where its text begins
    language: str  # console, sh or python
    text: str
    mark: str  # run by, run, not run; empty: none
    words: str  # what the mark says

    def commands(self) -> Iterator[tuple[str, str]]:
        """Yield each command, and what it prints, if that is shown; of sh there is one command: all of it."""
        if self.language != "console":
            yield self.text, ""
            return
        for told in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, printed = _first(told)
            yield command, printed


def _first(told: str) -> tuple[str, str]:
    """Return a command, which goes on after a backslash or within quotes, and what comes after it."""
    lines = told.splitlines(keepends=True)
    count = 1
    while count < len(lines) and (lines[count - 1].endswith("\\\n") or _open("".join(lines[:count]))):
        count += 1
    return "".join(lines[:count]), "".join(lines[count:])


def _open(command: str) -> bool:
    return re.sub(r'"(\\.|[^"\\])*"|#[^\n]*', "", command).count("'") % 2 == 1


def blocks(page: str) -> list[Block]:
    """Return all blocks of a page that hold commands; what only shows what is printed has none."""
    found = []
    of_all = ALL.search(page)
    for match in BLOCK.finditer(page):
        text = re.sub(f"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        line = page.count("\n", 0, match.start("text")) + 1
        said = match if match["mark"] or of_all is None else of_all
        block = Block(line, match["language"], text, said["mark"] or "", said["words"] or "")
        if block.mark != "file" and list(block.commands()):
            found.append(block)
    return found


def files(page: str) -> dict[str, str]:
    """Return the files that a page shows, by their names."""
    return dict(FILE.findall(page))


def filled(page: str, made: Mapping[str, Callable[..., str]]) -> str:
    """Return a page with what is made in its places. Raises LookupError for a place nothing is made for."""

    def fill(match: re.Match[str]) -> str:
        name, words = match.groups()
        if name not in made:
            raise LookupError(f"nothing is made for 'here: {name}' (there are: {', '.join(made)})")
        return made[name](*words.split())

    return HERE.sub(fill, page)


def explained(page: str) -> str:
    """Return a page on which readers see of which commands no test knows that they work, and why."""
    # Markdown takes what follows without an empty line for a part of the paragraph.
    return NOT_RUN.sub(r'\1<p class="not-run">No test runs this: \2.</p>\n', page)
