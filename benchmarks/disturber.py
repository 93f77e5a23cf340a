"""Somebody else on this machine, for as long as a command runs: it has to succeed as it does without.

    benchmarks/disturber.py --pauses --namespaces -- ./invokew test

``--pauses`` takes all processors away for 100 to 250 ms every 3 to 10 s, by real-time processes, as a
hypervisor does. ``--namespaces`` makes and deletes network namespaces, mounts over ``/run/netns``, and sends
by iperf3 as fast as it goes. Needs root. Whatever ends it, what it made on this machine goes with it.

Exit status: the command's; 2 for bad input.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

NAMESPACES = Path("/run/netns")
EVERY_SECONDS = (3.0, 10.0)
PAUSE_SECONDS = (0.1, 0.25)
PRIORITY = 50  # of SCHED_FIFO: above everything that is not real-time itself, and most that is
UNTIL_PARENT_ENDS = ["setpriv", "--pdeathsig", "KILL", "--"]


def pause(processor: int, seed: float, parent: int) -> None:
    """Take a processor away, again and again; those with one seed do it at the same times."""
    os.sched_setaffinity(0, [processor])
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    chance, at = random.Random(seed), seed
    while os.getppid() == parent:
        at += chance.uniform(*EVERY_SECONDS)
        time.sleep(max(0.0, at - time.monotonic()))
        until = at + chance.uniform(*PAUSE_SECONDS)
        while time.monotonic() < until:
            pass


@contextmanager
def pauses() -> Iterator[None]:
    """Pause all processors meanwhile."""
    begin = time.monotonic()
    fork = multiprocessing.get_context("fork")
    running = [
        fork.Process(target=pause, args=(processor, begin, os.getpid()), daemon=True)
        for processor in os.sched_getaffinity(0)
    ]
    for process in running:
        process.start()
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.join()


class Neighbour:
    """Somebody who works with network namespaces; ``done`` counts what has been done."""

    def __init__(self) -> None:
        self.mark = f"disturber-{os.getpid()}"
        self.done: Counter[str] = Counter()
        self._end = threading.Event()
        self._fresh = not NAMESPACES.exists()
        self._alive = -1

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Work meanwhile. What is left is removed by a process that waits for the end of this one.

        And of the commands that this one runs: a killed one leaves them at work, and they hold the pipe too.
        """
        gone, alive = os.pipe()
        self._alive = alive
        remover = os.fork()
        if remover == 0:
            os.setsid()
            os.close(alive)
            os.read(gone, 1)
            self._remove()
            os._exit(0)
        os.close(gone)
        try:
            with ThreadPoolExecutor() as pool:
                worker = pool.submit(self._work)
                try:
                    yield
                finally:
                    self._end.set()
                worker.result()
        finally:
            os.close(alive)
            os.waitpid(remover, 0)

    def _work(self) -> None:
        for number in itertools.count():
            if self._end.is_set():
                return
            first, second, hidden = (f"{self.mark}-{number}{letter}" for letter in "abc")
            self._run("ip", "netns", "add", first)
            self._run("ip", "netns", "add", second)
            self._run(
                "ip",
                "-n",
                first,
                "link",
                "add",
                "eth0",
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                second,
            )
            for host, name in enumerate((first, second), 1):
                self._run("ip", "-n", name, "address", "add", f"10.0.0.{host}/24", "dev", "eth0")
                self._run("ip", "-n", name, "link", "set", "eth0", "up")
            self._send(first, second)
            self._run("mount", "-t", "tmpfs", self.mark, str(NAMESPACES))
            self._run("ip", "netns", "add", hidden)
            self._run("ip", "netns", "delete", hidden)
            self._run("umount", "--lazy", str(NAMESPACES))  # somebody may be looking into it
            self._run("ip", "netns", "delete", first)
            self._run("ip", "netns", "delete", second)
            self.done.update(namespaces=3, mounts=1)

    def _send(self, first: str, second: str) -> None:
        """Send for a second."""
        enter = [[*UNTIL_PARENT_ENDS, "nsenter", f"--net={NAMESPACES / name}"] for name in (first, second)]
        serve = [*enter[1], "iperf3", "--server", "--one-off", "--forceflush"]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            for line in server.stdout:
                if "listening" in line:
                    break
            client = [*enter[0], "iperf3", "--client", "10.0.0.2", "--time", "1", "--json"]
            sent = json.loads(self._run(*client))["end"]["sum_sent"]["bytes"]
            self.done.update(transfers=1, gigabytes=sent / 1e9)

    def _run(self, *command: str) -> str:
        """Run a command. Raises CalledProcessError."""
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, pass_fds=[self._alive])
        return done.stdout

    def _remove(self) -> None:
        """Remove what is ours, and what ``ip netns`` has made for us."""
        for line in Path("/proc/self/mounts").read_text().splitlines():
            if line.startswith(f"{self.mark} {NAMESPACES} "):
                subprocess.run(["umount", "--lazy", NAMESPACES], check=False)
        for left in NAMESPACES.glob(f"{self.mark}-*"):
            subprocess.run(["ip", "netns", "delete", left.name], check=False)
        if self._fresh and NAMESPACES.exists() and not any(NAMESPACES.iterdir()):
            subprocess.run(["umount", "--lazy", NAMESPACES], check=False, stderr=subprocess.DEVNULL)
            with suppress(OSError):  # somebody uses it by now
                NAMESPACES.rmdir()


def main() -> int:
    """Disturb, and return the command's exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pauses", action="store_true", help="take all processors away now and then")
    parser.add_argument("--namespaces", action="store_true", help="make, hide and delete network namespaces")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="what is disturbed")
    asked = parser.parse_args()
    if not asked.pauses and not asked.namespaces:
        parser.error("one of --pauses and --namespaces is needed")
    if os.geteuid() != 0:
        parser.error("must be root")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    neighbour = Neighbour()
    with ExitStack() as meanwhile:
        if asked.pauses:
            meanwhile.enter_context(pauses())
        if asked.namespaces:
            meanwhile.enter_context(neighbour.at_work())
        status = subprocess.run([*UNTIL_PARENT_ENDS, *asked.command], check=False).returncode
    if asked.namespaces:
        done = ", ".join(f"{kind} {round(count)}" for kind, count in neighbour.done.items())
        print(f"meanwhile: {done}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
