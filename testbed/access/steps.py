"""Several commands that change a place, one after another, for the price of one; ``batch`` is for looking.

Getting to a place costs as much as most commands there do: two processes in a sandbox, a round trip by SSH.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.access.batch import TURN
from testbed.access.place import CommandError, Place

# For any POSIX shell. The arguments are, for each step, how many bytes of the standard input are its own and
# how many words it has, and these words. What a step leaves of its input is read, so that the next finds its
# own. What steps print goes nowhere, so that what is printed tells which step has failed.
SCRIPT = (
    TURN
    + """
step=0
while [ $# -gt 0 ]; do
    bytes=$1
    shift
    if [ "$bytes" = 0 ]; then
        turn "$@" </dev/null >/dev/null
    else
        head -c "$bytes" | { turn "$@" >/dev/null; ended=$?; while read -r rest; do :; done; exit "$ended"; }
    fi || { status=$?; echo "$step"; exit "$status"; }
    step=$((step + 1))
    count=$1
    shift
    shift "$count"
done
"""
)


@dataclass(frozen=True)
class Step:
    """One command, and the text on its standard input."""

    argv: Sequence[str]
    stdin: str = ""


def take(place: Place, steps: Sequence[Step]) -> None:
    """Run commands to their ends, in order, up to the first that fails.

    Raises CommandError with the place, that command and its own words.
    """
    argv = ["sh", "-c", SCRIPT, "sh"]
    for step in steps:
        argv += [str(len(step.stdin.encode())), str(len(step.argv)), *step.argv]
    done = place.run(argv, stdin="".join(step.stdin for step in steps), check=False)
    if done.status != 0 and done.stdout.strip().isdigit():
        raise CommandError(place.name, steps[int(done.stdout)].argv, done.status, done.stderr)
    done.checked(place.name, argv)
