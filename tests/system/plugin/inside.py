"""A program that runs on a node and answers, line by line, what it is asked: both sides are JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.system.plugin.conftest import Node


class Inside:
    """The program at work, by the node's own Python; ``arguments`` are the interpreter's."""

    def __init__(self, node: Node, *arguments: str | Path, path: Path | None = None) -> None:
        """Start it; ``path`` is where it finds modules."""
        environment = [] if path is None else ["env", f"PYTHONPATH={path}"]
        self._process = subprocess.Popen(
            node.argv(*environment, "/usr/bin/python3", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, asked: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
