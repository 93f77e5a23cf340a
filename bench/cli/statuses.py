"""What the exit statuses of each verb mean, as its ``--help`` says it."""

from __future__ import annotations

from collections.abc import Mapping

from bench.cli.exits import BAD_INPUT, CHANGED, FAILED, HELD, INVALID, VIOLATED

_BAD = {BAD_INPUT: "bad input: a message says where and what would be right; nothing was started"}
_FAILED = {FAILED: "it could not be done; a message says why"}
_DONE = {HELD: "done", **_BAD, **_FAILED}
_JUDGED = {
    HELD: "every promise was kept",
    VIOLATED: "a promise was broken",
    **_BAD,
    INVALID: "invalid: something else than the promise was the limit, so that nothing is shown",
    FAILED: "a testbed could not be brought up, or a file not be written, as on a full disk",
}
_STUDY = {**_JUDGED, HELD: "done, and every run is valid", VIOLATED: "with a gate: a promise was broken"}
_CHECK = {HELD: "all is as it should be", VIOLATED: "something is not", **_BAD, **_FAILED}
_COMMAND = {**_BAD, FAILED: "the testbed cannot be reached, or the command itself ended so"}

OF: Mapping[str, Mapping[int, str]] = {
    "bench": _JUDGED,
    "iperf": {
        **_JUDGED,
        HELD: "the promise was kept, or there is none",
        FAILED: "the pods cannot be entered",
    },
    "promise": {**_JUDGED, HELD: "every promise that is claimed was kept", VIOLATED: "one was broken"},
    "nightly": {**_JUDGED, CHANGED: "something is worse than in the nights before, and not acknowledged"},
    **dict.fromkeys(("matrix", "places", "backends", "study"), _STUDY),
    "figures": {**_JUDGED, VIOLATED: "a promise was broken; with --check: a file does not follow"},
    "compare": {**_JUDGED, HELD: "nothing is worse", VIOLATED: "something is worse", **_FAILED},
    "reproduce": {**_JUDGED, HELD: "every claim came out again", VIOLATED: "one did not"},
    **dict.fromkeys(
        ("doctor", "lint", "test", "test.long", "test.alone", "test.setup", "test.e2e", "test.vm"), _CHECK
    ),
    **dict.fromkeys(("exec", "ssh", "capture"), _COMMAND),
}
_ALWAYS = {
    "70": "a bug in the testbed; the last line says where the details are",
    "128 + n": "ended by signal n; what was begun has been taken down",
}


def of(verb: str) -> dict[str, str]:
    """Return each exit status of a verb with its meaning."""
    own = {str(status): words for status, words in sorted(OF.get(verb, _DONE).items())}
    command = {"others": "those of the command"} if OF.get(verb) is _COMMAND else {}
    return {**own, **_ALWAYS, **command}
