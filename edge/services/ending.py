"""Whether a proxy that is told to end is to leave its rules for the one after it, or to take them along.

Kubernetes says neither. But who is deleted for good has no DaemonSet any more, and as a rule neither account
nor rights; who is restarted or replaced by another version has.
"""

from __future__ import annotations

import argparse
import time

from edge.http import AwayError, Question, RefusedError, Server

# An API server that has just begun may refuse anybody; in pods' grace period, which is 30 s.
LASTING_SECONDS, AGAIN_SECONDS = 5.0, 0.5
_UNKNOWN, _FORBIDDEN = 401, 403


def daemon_set(text: str) -> str:
    """Return the path of a DaemonSet that an option names. Raises ArgumentTypeError."""
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not like kube-system/proxy")
    return f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}"


def is_for_good(server: Server, path: str) -> bool:
    """Whether a DaemonSet is gone. It is not if the API says nothing, and is if it refuses for long.

    One refusal is none that lasts, however late it comes.
    """
    last = float("inf")
    while True:
        try:
            return "deletionTimestamp" in server.ask(Question("GET", path))["metadata"]
        except AwayError as error:
            status = error.status if isinstance(error, RefusedError) else 0
        if status == 404 or time.monotonic() >= last:
            return status in (404, _UNKNOWN, _FORBIDDEN)
        last = min(last, time.monotonic() + LASTING_SECONDS)
        time.sleep(AGAIN_SECONDS)
