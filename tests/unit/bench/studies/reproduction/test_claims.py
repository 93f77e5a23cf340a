"""What the docs claim: is it said there, is there a recording of it, and what does that show?"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.analysis import summary
from bench.analysis.summary import Summary
from bench.recording import archive
from bench.recording.atomic import StoredError
from bench.studies.promise import report
from bench.studies.reproduction import claims, pages
from bench.studies.reproduction.claims import Claim, Expected, Observed
from tests.paths import CONTMEC_SUMMARY, ROOT
from tests.unit.test_links import anchor

KNOWN = claims.read()
REFERENCE = claims.REFERENCE
NEEDED = ("contmec", "kubernetes", "congested")
UNFIT = {one.recording for one in KNOWN.unfit}
REPETITIONS = 5
# A throughput, a latency or a share, as the docs write one.
NUMBER = re.compile(r"\d[\d.]*\s?(?:%|percent\b|[GMk]bit/s|ms\b|microseconds?\b)")


@pytest.mark.parametrize("claim", KNOWN.claims, ids=lambda claim: claim.id)
def test_a_claim_is_said_where_it_is_said_to_be(claim: Claim) -> None:
    assert claims.is_said(claim.sentence, (ROOT / claim.page).read_text(encoding="utf-8"))
    assert (REFERENCE / claim.recording).is_dir() != (claim.recording in KNOWN.missing)


def test_a_sentence_may_be_broken_into_other_lines_but_not_into_other_words() -> None:
    assert claims.is_said("a  promise\n is kept", "that a promise is\nkept.")
    assert not claims.is_said("a promise is kept", "that a promise was kept.")


def numbers() -> Iterator[tuple[str, str]]:
    """Yield the section and the text of every line of the docs that has a number as measured ones have."""
    for file in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if file in (pages.FILE, report.PUBLISHED):  # made of claims, and of recordings
            continue
        heading, code = "", False
        for line in file.read_text(encoding="utf-8").splitlines():
            code ^= line.startswith("```")
            if not code and line.startswith("#"):
                heading = anchor(line.lstrip("#"))
            if NUMBER.search(line):
                yield f"{file.relative_to(ROOT)}#{heading}", line


def test_every_number_of_the_docs_is_claimed_or_recorded_or_listed_with_the_reason_why_not() -> None:
    listed = {*(one.where for one in KNOWN.shown), *(one.where for one in KNOWN.unrecorded)}
    unclaimed = {
        where
        for where, line in numbers()
        if not any(claims.is_said(claim.sentence, line) for claim in KNOWN.claims)
    }
    assert unclaimed == listed


def of_files(files: Mapping[str, bytes]) -> tuple[dict[str, Any], int]:
    """Return what a packed recording says of the harness, and how many repetitions it has."""
    environment, run = (json.loads(files[path]) for path in (archive.ENVIRONMENT, archive.RUN))
    return environment["harness"], len(run["repetitions"])


def in_history(commit: str) -> bool:
    command = ["git", "-C", str(ROOT), "merge-base", "--is-ancestor", commit, "HEAD"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def fit(name: str) -> bool:
    """Tell whether a recording, or each of a study, is as it should be."""
    found = [of_files(files) for files in archive.packed_recordings(REFERENCE / name).values()]
    fewest = REPETITIONS if name in NEEDED else 1
    return bool(found) and all(
        not harness["uncommitted_changes"] and in_history(harness["commit"]) and repetitions >= fewest
        for harness, repetitions in found
    )


RECORDINGS = sorted(
    {*NEEDED, *(claim.recording for claim in KNOWN.claims), *(place.name for place in REFERENCE.iterdir())}
)


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.long(one_in=5)
def test_every_recording_is_as_it_should_be_or_listed_with_the_reason_why_not(name: str) -> None:
    if not in_history("HEAD"):
        pytest.skip("there is no history here: no git, or only what is at one commit")
    assert fit(name) != (name in UNFIT)


def test_what_is_listed_as_unfit_is_a_recording_that_is_asked_for() -> None:
    assert set(RECORDINGS) >= UNFIT


def test_the_page_is_made_of_the_claims() -> None:
    assert pages.FILE.read_text(encoding="utf-8") == pages.render(KNOWN), "make it: ./invokew figures --all"


@pytest.fixture(scope="module")
def kept() -> Summary:
    return summary.read(CONTMEC_SUMMARY)


def claim_of(*expected: Expected) -> Claim:
    return KNOWN.named(["figure-13"])[0].model_copy(update={"expected": expected})


def test_what_is_expected_is_read_of_a_summary(kept: Summary) -> None:
    flow = kept.flows[0]
    observed = claims.observe(
        claim_of(
            Expected(what="verdict", value="held"),
            Expected(what="share", value=1.0, flow=flow.name, phase="disturbed"),
            Expected(what="attainment", value=1.0),
            Expected(what="share", value=1.0, flow="no such flow"),
        ),
        kept,
    )
    mean = flow.phases["disturbed"].mean_bps
    assert [one.value for one in observed[:2]] == ["held", mean / (flow.expected_goodput_bps or 0)]
    assert [(one.flow, one.phase) for one in observed[2:-1]] == [
        (each.name, phase) for each in kept.flows[:3] for phase in ("quiet", "disturbed")
    ]
    assert (observed[-1].value, observed[-1].inside) == (None, False)


@pytest.mark.parametrize(
    ("below", "above", "value", "inside"),
    [
        (0.1, 0.2, 0.9, True),
        (0.1, 0.2, 0.89, False),
        (0.1, 0.2, 1.2, True),
        (0.1, 0.2, 1.21, False),
        (0.0, None, 50.0, True),
        (None, 0.0, 0.0, True),
        (None, 0.0, 1.1, False),
    ],
)
def test_how_far_off_a_number_may_be(
    below: float | None, above: float | None, value: float, inside: bool
) -> None:
    expected = Expected(what="share", value=1.0, below=below, above=above)
    assert Observed(expected=expected, flow="", phase="", value=value).inside is inside


def test_an_invalid_run_says_nothing_of_a_claim(kept: Summary) -> None:
    claim = claim_of(Expected(what="verdict", value="held"))
    for verdict, outcome in (("held", "confirmed"), ("violated", "outside"), ("invalid", "invalid")):
        run = kept.model_copy(update={"verdict": verdict})
        assert claims.Trial(claim, claims.observe(claim, run), verdict, Path()).outcome == outcome


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("claims: [", "line 2, column 1: not YAML"),
        ("machines: {}\nclaims: [{id: a}]", r"claims\[0\]\.page: this field is required"),
        ("machines: {}\nclaims: []\nmore: 1", "more"),
    ],
)
def test_a_file_of_claims_that_is_none_is_refused_with_the_place(
    text: str, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text(text)
    with pytest.raises(StoredError, match=words) as caught:
        claims.read(file)
    assert str(file) in str(caught.value)


def test_a_claim_of_a_machine_that_is_not_described_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "claims.yaml"
    file.write_text(claims.FILE.read_text(encoding="utf-8").replace("machine: machines", "machine: moon"))
    with pytest.raises(StoredError, match="no machine 'moon'"):
        claims.read(file)
