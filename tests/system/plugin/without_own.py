"""Run the built plugin as a Python would whose own modules have other names: not even `_socket` is there.

They are refused to the plugin alone: what wraps them needs them.
"""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

OWN = ("_json", "_socket", "_sqlite3")


def main() -> None:
    """Refuse them, and run the program."""
    real = builtins.__import__

    def refusing(name: str, given: Any = None, *others: Any, **named: Any) -> Any:
        if name in OWN and given is not None and given.get("__name__", "").startswith("concorde"):
            raise ImportError(name)
        return real(name, given, *others, **named)

    builtins.__import__ = refusing  # type: ignore[assignment]  # a looser signature
    program, sys.argv = sys.argv[1], sys.argv[1:]
    text = Path(program).read_text(encoding="utf-8")
    exec(compile(text, program, "exec"), {"__name__": "__main__", "__file__": program})


if __name__ == "__main__":
    main()
