"""Exit statuses: their numbers, what each means in general, and what those of a verb mean.

Shell completion reads this by way of the table of verbs, so Python's standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

HELD, VIOLATED, BAD_INPUT, INVALID, FAILED, CHANGED = 0, 1, 2, 3, 4, 5
BUG = 70  # EX_SOFTWARE, "internal software error", in sysexits.h
STATUS_OF_VERDICT = {"held": HELD, "violated": VIOLATED, "invalid": INVALID}

MEANINGS = {
    str(HELD): "held; for verbs that judge nothing: done",
    str(VIOLATED): "a guarantee was violated, or another check was made and did not pass; never an error",
    str(BAD_INPUT): "bad input, or something is missing: nothing was started; the message names the place",
    str(INVALID): "invalid: the run proves nothing",
    str(
        FAILED
    ): "the testbed could not be brought up, a command in it failed, or a file could not be written; "
    "there is no verdict",
    str(CHANGED): "`nightly`: something is worse than before and not acknowledged; 1 and 4 come first",
    str(BUG): "a bug in the testbed; one line says so, and in which file the details are",
    "128 + n": "ended by signal n",
}

# How a verb may end, beside the ways in which each may.
Ends = Mapping[int | str, str]
_BAD: Ends = {BAD_INPUT: "bad input: a message says where and what would be right; nothing was started"}
_FAILED: Ends = {FAILED: "it could not be done; a message says why"}
DONE: Ends = {HELD: "done", **_BAD, **_FAILED}
JUDGED: Ends = {
    HELD: "every promise was kept",
    VIOLATED: "a promise was broken",
    **_BAD,
    INVALID: "invalid: something else than the promise was the limit, so that nothing is shown",
    FAILED: "a testbed could not be brought up, or a file not be written, as on a full disk",
}
STUDY: Ends = {**JUDGED, HELD: "done, and every run is valid", VIOLATED: "with a gate: a promise was broken"}
COMPARED: Ends = {**JUDGED, HELD: "nothing is worse", VIOLATED: "something is worse", **_FAILED}
CHECK: Ends = {HELD: "all is as it should be", VIOLATED: "something is not", **_BAD, **_FAILED}
COMMAND: Ends = {
    **_BAD,
    FAILED: "the testbed cannot be reached, or the command itself ended so",
    "others": "those of the command",
}
_ALWAYS: Ends = {
    str(BUG): "a bug in the testbed; the last line says where the details are",
    "128 + n": "ended by signal n; what was begun has been taken down",
}


def said(ends: Ends) -> dict[str, str]:
    """Return each exit status of a verb with its meaning, in the order in which they are shown."""
    numbers = {one: ends[one] for one in sorted(one for one in ends if isinstance(one, int))}
    others = {one: words for one, words in ends.items() if one not in numbers}
    return {str(one): words for each in (numbers, _ALWAYS, others) for one, words in each.items()}


def worst(verdicts: Iterable[str]) -> int:
    """Return the exit status of several runs: that of the worst verdict."""
    found = {STATUS_OF_VERDICT[verdict] for verdict in verdicts}
    return next((bad for bad in (VIOLATED, INVALID) if bad in found), HELD)
