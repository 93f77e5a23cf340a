"""Inside a node: run commands at once while files are damaged.

For each line on standard input, an object with `commands`, as churn.py takes them, and `damages`, one on
standard output: the commands' answers. A damage says after how many seconds which file is damaged how; `seed`
says where.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.system.plugin.churn import run

YESTERDAY = Path("/run/yesterday")


def damage(after: float, kind: str, file: str, seed: int) -> None:
    """Do it. What another damage has taken away cannot be damaged again."""
    time.sleep(after)
    with suppress(OSError, sqlite3.Error):
        KINDS[kind](Path(file), random.Random(seed))


def _bits(file: Path, chance: random.Random) -> None:
    with file.open("r+b") as opened:
        size = opened.seek(0, os.SEEK_END)
        for _ in range(chance.choice((1, 1, 3, 30)) if size else 0):
            at = chance.randrange(size)
            opened.seek(at)
            byte = opened.read(1)  # none if another damage has cut it off
            opened.seek(at)
            opened.write(bytes(value ^ 1 << chance.randrange(8) for value in byte))


def _truncation(file: Path, chance: random.Random) -> None:
    os.truncate(file, chance.choice((0, chance.randrange(file.stat().st_size + 1))))


def _deletion(file: Path, chance: random.Random) -> None:
    if chance.random() < 0.3:
        shutil.rmtree(file.parent)
    else:
        file.unlink()


def _replacement(file: Path, chance: random.Random) -> None:
    how = chance.choice(("random", "empty", "yesterday", "another", "tables", "link", "directory"))
    other = file.with_name("replacing")
    if how == "random":
        other.write_bytes(chance.randbytes(20_000))
    elif how == "empty":
        other.write_bytes(b"")
    elif how in ("yesterday", "another"):
        copies = sorted(YESTERDAY.iterdir())
        if not copies:
            return
        own = YESTERDAY / file.parent.name
        shutil.copy(own if how == "yesterday" and own in copies else chance.choice(copies), other)
    elif how == "tables":
        store = sqlite3.connect(other)
        store.execute("CREATE TABLE something (else_ TEXT)")
        store.execute(f"PRAGMA user_version = {chance.choice((0, 1, 2, 77, -1))}")
        store.commit()
        store.close()
    elif how == "link":
        other.symlink_to(YESTERDAY / "nothing")
    else:
        file.unlink()
        other.mkdir()
    other.replace(file)


def _mode(file: Path, chance: random.Random) -> None:
    chance.choice((file, file.parent, file.parent.parent)).chmod(chance.choice((0o777, 0o000, 0o444, 0o666)))


def _owner(file: Path, chance: random.Random) -> None:
    os.chown(chance.choice((file, file.parent)), 1234, 1234)


KINDS = {
    "bits": _bits,
    "truncation": _truncation,
    "deletion": _deletion,
    "replacement": _replacement,
    "mode": _mode,
    "owner": _owner,
}


def copy(files: list[str]) -> None:
    """Keep what the files are now, to be put in their place another time."""
    YESTERDAY.mkdir(exist_ok=True)
    for file in map(Path, files):
        if file.is_file():
            shutil.copy(file, YESTERDAY / file.parent.name)


def main() -> None:
    """Answer line by line."""
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        copy(asked["copied"])
        with ThreadPoolExecutor(8) as pool:
            damages = [pool.submit(damage, **one) for one in asked["damages"]]
            answers = [pool.submit(run, **one) for one in asked["commands"]]
        for done in damages:
            done.result()
        print(json.dumps([answer.result() for answer in answers]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
