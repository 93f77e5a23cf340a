"""Inside a node: make calls of the plugin, one after another, each in a process of its own.

The first argument is the plugin's executable, the second the directory of its sources. For each line on
standard input, an object with `environment`, `stdin` (hexadecimal) and `real`, one on standard output:
`status` (null if it did not end), `stdout` and `stderr`. With `real` the executable is started, else the
process is a copy of this one, which has the modules loaded; then there is `lines`, how many of Python ran.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
from typing import Any

from tests import effort

PATIENCE_MILLISECONDS = 60_000
PR_SET_CHILD_SUBREAPER = 36


def serve(executable: str, case: dict[str, Any]) -> dict[str, Any]:
    streams = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr", "lines")]
    os.pwrite(streams[0], bytes.fromhex(case["stdin"]), 0)
    environment = {os.fsencode(key): os.fsencode(value) for key, value in case["environment"].items()}
    child = os.fork()
    if child == 0:
        _call(executable, streams, environment, case["real"])
    watched = select.poll()
    descriptor = os.pidfd_open(child)
    watched.register(descriptor, select.POLLIN)
    ended = bool(watched.poll(PATIENCE_MILLISECONDS))
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(descriptor)
    _reap()
    stdout, stderr, lines = (os.pread(stream, 1 << 24, 0).decode(errors="replace") for stream in streams[1:])
    for stream in streams:
        os.close(stream)
    return {
        "status": os.waitstatus_to_exitcode(status) if ended else None,
        "lines": int(lines or 0),
        "stdout": stdout,
        "stderr": stderr,
    }


def _call(executable: str, streams: list[int], environment: dict[bytes, bytes], real: bool) -> None:
    try:
        for at, stream in enumerate(streams[:3]):
            os.dup2(stream, at)
        os.environb.clear()
        os.environb.update(environment)
        if real:
            os.execve(executable, [executable], environment)
        sys.argv = [executable]
        from concorde.__main__ import main as call

        statuses: list[int] = []
        lines = effort.lines(lambda: statuses.append(call()))
        os.pwrite(streams[3], str(lines).encode(), 0)
        os._exit(*statuses)
    except BaseException:
        import traceback

        os.write(2, traceback.format_exc().encode())
        os._exit(70)


def _reap() -> None:
    """Tools that a call had started ahead end when it does."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main() -> None:
    executable, sources = sys.argv[1:]
    sys.path.insert(0, sources)
    # Loaded once, for all.
    import concorde.__main__
    import concorde.enforcements.node
    import concorde.node.ledger
    import concorde.verbs.add
    import concorde.verbs.check
    import concorde.verbs.delete
    import concorde.verbs.gc
    import concorde.verbs.status  # noqa: F401

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    commands = os.fdopen(os.dup(0), "r")
    answers = os.fdopen(os.dup(1), "w")
    for line in commands:
        json.dump(serve(executable, json.loads(line)), answers)
        answers.write("\n")
        answers.flush()


if __name__ == "__main__":
    main()
