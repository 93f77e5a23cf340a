"""Long-running components on a node: started, watched, stopped; what a component said last, when it failed.

A component is started detached, so that it outlives the harness where the testbed does, and ends with the
sandbox at the latest. A shell beside each notes its process id and how it ended, so nothing has to be polled
to know that it is alive: ``ended`` is there or it is not. Nothing is ever restarted by itself; a component
that ends while something is measured is a fault of the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from testbed.access import wait_for
from testbed.access.place import Place

LAST_LINES = 6

# It has begun when its process id is there: the pipe ends when nobody has it open any more. How it ended is
# there whole or not at all.
START = """
directory=$1
shift
mkdir -p "$directory" && cd "$directory" && rm -f pid ended || exit
{
    setsid sh -c '
        "$@" 3>&- &
        echo $! >pid
        echo $$ >keeper
        exec 3>&-
        wait $!
        echo $? >ending
        mv ending ended
    ' sh "$@" 3>&1 </dev/null >>log 2>&1 &
} | cat
"""
# Until it is noted how it ended, for whoever starts it anew would take that for the new one's end. If whoever
# notes it was killed, too, nobody does. What it had just begun (an nft that writes its rules) ends with it,
# or would be done after it; what is to outlive it, as containers do, is in groups of its own. Where nobody
# collects the dead a group never goes, so that is not waited for long.
KILL = """
cd "$1" && [ ! -e ended ] && pid=$(cat pid) && keeper=$(cat keeper) || exit
kill -KILL "$pid" 2>/dev/null
while [ ! -e ended ] && kill -0 "$keeper" 2>/dev/null; do sleep 0.02; done
left=10
while kill -s KILL -- "-$keeper" 2>/dev/null && [ "$left" -gt 0 ]; do left=$((left - 1)); sleep 0.02; done
"""
# A Go program that panics, or is ended by its runtime or klog's word F, says why above a long stack trace.
LOOK = """
cd "$1" || exit
[ -e ended ] || exit 0
cat ended
grep -E "^(panic: |fatal error: |F[0-9]{4} )" log | tail -n 1 | grep . || tail -n "$2" log
"""


class ComponentError(RuntimeError):
    """A component did not do what it is there for; the message holds its own last words."""


@dataclass(frozen=True)
class Component:
    """A program that runs as long as its cluster does."""

    name: str  # as messages call it
    place: Place
    directory: str  # its log and what is known of its process, on the place
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Start it; it may have ended again when this returns."""
        settings = ["env", *(f"{name}={value}" for name, value in self.env.items())]
        self.place.run(["sh", "-c", START, "sh", self.directory, *settings, *self.argv])

    def kill(self) -> None:
        """End it at once, and wait for its end."""
        self.place.run(["sh", "-c", KILL, "sh", self.directory], check=False)

    def restart(self) -> None:
        """End it at once, and start it anew."""
        self.kill()
        self.start()

    def fault(self) -> str | None:
        """Return how it ended and its last lines; None while it runs."""
        shown = self.place.run(["sh", "-c", LOOK, "sh", self.directory, str(LAST_LINES)]).stdout
        if not shown:
            return None
        status, _, text = shown.partition("\n")
        return f"{self.name} on {self.place.name} ended with {status}: {text.strip() or 'it said nothing'}"

    def last_words(self) -> str:
        """Return the last lines of its log."""
        tail = ["tail", "-n", str(LAST_LINES), f"{self.directory}/log"]
        return self.place.run(tail, check=False).stdout.strip() or "it said nothing"

    def wait_until_it_answers(self, address: str, seconds: float) -> None:
        """Wait until something answers: a URL with status 200, or a Unix socket's path.

        Raises ComponentError, with the component's last lines, when it ends before, or time is over.
        """
        self._wait({"address": address}, seconds)

    def wait_until_it_says(self, command: Sequence[str], seconds: float) -> None:
        """Wait until a command, run where it is, says something. Raises ComponentError; see above."""
        self._wait({"command": command}, seconds)

    def _wait(self, wish: Mapping[str, object], seconds: float) -> None:
        wishes = {**wish, "ended": f"{self.directory}/ended", "seconds": seconds}
        done = self.place.run(
            ["/usr/bin/python3", "-I", "-S", str(wait_for.__file__)],
            stdin=json.dumps(wishes),
            check=False,
            timeout=seconds + 10,
        )
        if done.status != 0:
            text = f"{done.stderr.strip()}: {self.last_words()}"
            raise ComponentError(self.fault() or f"{self.name} on {self.place.name} does not answer: {text}")
