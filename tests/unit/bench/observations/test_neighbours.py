from __future__ import annotations

from bench.observations.neighbours import Others, notes

NOBODY = Others(frozenset(), False)


def test_without_others_there_is_nothing_to_say() -> None:
    assert notes(NOBODY, NOBODY) == []


def test_a_run_that_was_there_at_either_moment_is_noted_once() -> None:
    before, after = (
        frozenset({"process 2 of user 0"}),
        frozenset({"process 2 of user 0", "process 1 of user 5"}),
    )
    assert notes(Others(before, False), Others(after, False)) == [
        "another run went on on this machine meanwhile: process 1 of user 5",
        "another run went on on this machine meanwhile: process 2 of user 0",
    ]


def test_what_cannot_be_seen_is_said() -> None:
    (note,) = notes(NOBODY, Others(frozenset(), True))
    assert note.startswith("not readable: whether other users' runs")
