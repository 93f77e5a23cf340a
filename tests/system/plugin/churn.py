"""Inside a node: run commands at once, kill some of them at a moment, and look at what the node then holds.

For each line on standard input, a JSON object with `commands`, one on standard output: `answers`, each null
where the command was killed; `watched`, the uplink's classes as they were meanwhile; and `sight`, the stores
and the kernel once nothing is at work any more. What it all means is the reader's business.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

STATE = "/run/concorde"
LOCK = Path(STATE, "node/ledger.lock")
PAUSE_SECONDS = 0.02


def step(plugin: str, commands: list[dict[str, Any]]) -> dict[str, Any]:
    """Run some commands at once, watching the classes, then look."""
    with ThreadPoolExecutor(len(commands) + 1) as pool:
        running = [pool.submit(run, **command) for command in commands]
        watched = {classes()}
        while wait(running, PAUSE_SECONDS).not_done:
            watched.add(classes())
    watched.add(classes())  # what a killed one left behind may still be at work
    return {
        "answers": [future.result() for future in running],
        "watched": sorted(watched - {""}),
        "sight": look(plugin),
    }


def run(
    argv: list[str], environment: dict[str, str], stdin: str, killed: tuple[float, bool] | None
) -> dict[str, Any] | None:
    """Run a command, for so many seconds at most; then it is killed, alone or with all it started."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, text=True, start_new_session=True
    )
    seconds, with_children = killed or (None, False)
    try:
        stdout, stderr = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        if with_children:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        stdout, stderr = process.communicate()
        if process.returncode < 0:
            return None
    return {"status": process.returncode, "stdout": stdout, "stderr": stderr}


def look(plugin: str) -> dict[str, Any]:
    """The stores and the kernel, at a moment when nobody holds the node's lock."""
    if not LOCK.exists():
        return _look(plugin)
    with LOCK.open("r+b") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX, 1)  # a killed call's `tc` holds it until it has ended
        return _look(plugin)


def _look(plugin: str) -> dict[str, Any]:
    return {
        "ledger": json.loads(output(plugin, "ledger", "--json")),
        "leases": {network: leases(network) for network in ("cluster-a", "cluster-b")},
        "qdiscs": output("tc", "qdisc", "show", "dev", "eth0"),
        "classes": output("tc", "class", "show", "dev", "eth0"),
        "ruleset": json.loads(output("nft", "-j", "list", "ruleset"))["nftables"],
    }


def classes() -> str:
    """The uplink's classes at one moment; nothing if they changed while they were listed.

    As text, because not every tc prints them as JSON.
    """
    done = subprocess.run(["tc", "class", "show", "dev", "eth0"], capture_output=True, text=True, check=True)
    return "" if done.stderr else done.stdout


def leases(network: str) -> dict[str, int]:
    """Container and address of every lease of a network, straight from the ledger."""
    path = Path(STATE, "node/ledger.sqlite")
    if not path.exists():
        return {}
    store = sqlite3.connect(path)
    try:
        if store.execute("PRAGMA user_version").fetchone() < (5,):
            return {}  # its maker was killed before the tables were there
        query = "SELECT container, address FROM attachment WHERE network = ?"
        return dict(store.execute(query, (network,)))
    finally:
        store.close()


def output(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> None:
    """Answer line by line; the argument is the plugin's path."""
    for line in sys.stdin:
        json.dump(step(sys.argv[1], json.loads(line)["commands"]), sys.stdout)
        sys.stdout.write("\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
