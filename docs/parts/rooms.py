"""The rooms of the code as tables: in the order in which imports go, with what each says that it is."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from docs.parts.table import table
from testbed.resources import HOME

PAGE = HOME / "docs" / "explanation" / "architecture.md"
BEGIN, END = r"(<!-- The rooms of (\w+), by \./invokew schema -->\n)", r"(<!-- The end of them -->\n)"
PART = re.compile(rf"{BEGIN}.*?{END}", re.DOTALL)


def render() -> str:
    """Return the page with the tables as they are now."""
    contracts = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))
    layers = {one["name"]: one for one in contracts["tool"]["importlinter"]["contracts"]}

    def part(match: re.Match[str]) -> str:
        begin, package, end = match.groups()
        rows = _rows(package, layers[f"The rooms of {package}"])
        return f"{begin}\n{table(['Room', 'What it is'], rows)}\n{end}"

    return PART.sub(part, PAGE.read_text(encoding="utf-8"))


def _rows(package: str, contract: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each room of a package, and the first sentence of what it says of itself."""
    for room in " | ".join(contract["layers"]).split(" | "):
        folder = HOME / package / room
        file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
        said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        sentence = re.split(r"(?<=\.)\s", said, maxsplit=1)[0]
        yield f"`{room}{'/' if folder.is_dir() else '.py'}`", sentence.replace("``", "`").removesuffix(".")
