"""Whether a proxy that is told to end is to leave its rules for the one after it, or to take them along.

Kubernetes says neither. But who is deleted for good has no DaemonSet any more, and as a rule neither account
nor rights; who is restarted or replaced by another version has.
"""

from __future__ import annotations

import time

from edge.access import path_in
from edge.http import AwayError, Question, RefusedError, Server

# An API server that has just begun may refuse anybody.
LASTING_SECONDS, AGAIN_SECONDS = 5.0, 0.5
PATIENCE_SECONDS = 20.0  # with an answer and what then is to be done in pods' grace period, which is 30 s
_UNKNOWN, _FORBIDDEN = 401, 403

daemon_set = path_in("/apis/apps/v1", "daemonsets")


def is_for_good(server: Server, path: str) -> bool:
    """Whether a DaemonSet is gone: the API says so, or refuses for long to say anything.

    A silent API is asked until it is too late to hear it, and then decides nothing: while it is away, what
    the rules lead to may go on as ever.
    """
    refused_until, silent_until = float("inf"), time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return "deletionTimestamp" in server.ask(Question("GET", path))["metadata"]
        except AwayError as error:
            status = error.status if isinstance(error, RefusedError) else 0
        now = time.monotonic()
        if status == 404:
            return True
        if status in (_UNKNOWN, _FORBIDDEN):
            if now >= refused_until:
                return True
            refused_until = min(refused_until, now + LASTING_SECONDS)
        elif now >= silent_until:
            return False
        time.sleep(AGAIN_SECONDS)
