"""Several commands in a place for the price of one, where getting there is what takes the time.

Each way into a pod through an API, or to a machine by SSH, is a client program or a round trip. To look at
twenty things, one is enough; and steps that change something are taken together, one after another.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed.access.place import CommandError, Place, Result, in_parallel

# For any POSIX shell. ``turn`` is given how many words a command has, these words, and others behind them. It
# moves the command's words behind all others, drops those, and runs the command.
TURN = """
turn() {
    count=$1
    shift
    others=$(($# - count))
    while [ "$count" -gt 0 ]; do
        set -- "$@" "$1"
        shift
        count=$((count - 1))
    done
    shift "$others"
    "$@"
}
"""
# The first argument is a mark; then come the commands, each with the number of its words before it. What a
# command says about its failure is asked for only then, by running it again: these commands change nothing.
SCRIPT = (
    """
mark=$1
shift
"""
    + TURN
    + """
while [ $# -gt 0 ]; do
    output=$(turn "$@" 2>/dev/null </dev/null)
    status=$?
    complaint=
    [ "$status" = 0 ] || complaint=$(turn "$@" 2>&1 >/dev/null </dev/null)
    printf '%s\\n%s\\n%s\\n%s\\n' "$status" "$output" "$mark" "$complaint"
    printf '%s\\n' "$mark"
    count=$1
    shift
    shift "$count"
done
"""
)


def look(place: Place, commands: Sequence[Sequence[str]]) -> list[Result]:
    """Run commands that change nothing, and return what each left, without trailing newlines.

    Raises CommandError if the place cannot be reached.
    """
    mark = secrets.token_hex(8)
    argv = [word for command in commands for word in (str(len(command)), *command)]
    answered = place.run(["sh", "-c", SCRIPT, "sh", mark, *argv]).stdout
    return list(_results(answered.split(f"\n{mark}\n")))


def look_around(
    looks: Mapping[str, tuple[Place, Mapping[str, Sequence[str]]]],
) -> dict[str, dict[str, Result]]:
    """Run in several places, all at the same time, commands that change nothing; return what each left.

    Looks, and the commands of each, are known by names. Where a place cannot be reached, each command has
    failed with the words that say so.
    """

    def look_there(name: str) -> dict[str, Result]:
        place, commands = looks[name]
        try:
            results = look(place, list(commands.values()))
        except CommandError as error:
            results = [Result(1, "", str(error))] * len(commands)
        return dict(zip(commands, results, strict=True))

    return dict(zip(looks, in_parallel(look_there, looks), strict=True))


def _results(parts: Sequence[str]) -> Iterator[Result]:
    """Yield a result for each pair of parts: status and output, complaint."""
    for answer, complaint in zip(parts[0::2], parts[1::2], strict=False):
        status, _, output = answer.partition("\n")
        yield Result(int(status), output, complaint)


# For any POSIX shell. The arguments are, for each step, how many bytes of the standard input are its own and
# how many words it has, and these words. What a step leaves of its input is read, so that the next finds its
# own. What steps print goes nowhere, so that what is printed tells which step has failed. A file needs
# one program alone.
STEPS_SCRIPT = (
    TURN
    + """
step=0
while [ $# -gt 0 ]; do
    bytes=$1
    shift
    if [ "$bytes" = 0 ]; then
        turn "$@" </dev/null >/dev/null
    elif [ "$1 $2" = "2 tee" ]; then
        head -c "$bytes" >"$3"
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


def writing(files: Mapping[str, str]) -> list[Step]:
    """Return what writes files, given by their paths, into directories that it makes."""
    if not files:
        return []
    directories = dict.fromkeys(path.rpartition("/")[0] for path in files)
    return [Step(["mkdir", "-p", *directories]), *(Step(["tee", path], text) for path, text in files.items())]


def take(place: Place, steps: Sequence[Step]) -> None:
    """Run commands to their ends, in order, up to the first that fails.

    Raises CommandError with the place, that command and its own words.
    """
    argv = ["sh", "-c", STEPS_SCRIPT, "sh"]
    for step in steps:
        argv += [str(len(step.stdin.encode())), str(len(step.argv)), *step.argv]
    done = place.run(argv, stdin="".join(step.stdin for step in steps), check=False)
    if done.status != 0 and done.stdout.strip().isdigit():
        raise CommandError(place.name, steps[int(done.stdout)].argv, done.status, done.stderr)
    done.checked(place.name, argv)
