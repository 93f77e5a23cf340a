"""``nightly.yaml``: what is wrong in it is named, with its place."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from bench.recording.atomic import StoredError
from bench.studies.nightly import findings, metrics
from bench.studies.nightly.findings import Acknowledgement
from tests.unit.bench.studies.nightly.builders import MACHINE, night

GOOD = {
    "machine": MACHINE,
    "metric": '"small/A -> C/*"',
    "first_night": night(13).run_id,
    "reason": "a slower compiler",
    "who": "somebody",
    "until": "2027-01-31",
}


def written(directory: Path, **fields: str | None) -> Path:
    file = directory / "nightly.yaml"
    entry = {name: value for name, value in {**GOOD, **fields}.items() if value is not None}
    lines = "\n".join(f"    {name}: {value}" for name, value in entry.items())
    file.write_text(f"acknowledgements:\n  -\n{lines}\n")
    return file


def test_those_of_a_machine_are_read(tmp_path: Path) -> None:
    file = written(tmp_path)
    (entry,) = findings.read_acknowledgements(file, MACHINE).entries
    assert entry.covers("small/A -> C/quiet/mean")
    assert not entry.covers("small/B -> D/quiet/mean")
    assert findings.read_acknowledgements(file, "f" * 12).entries == []


@pytest.mark.parametrize("name", ["small/A [1] -> C?/quiet/mean", "small/*/quiet/mean", "small/[!x]/up"])
def test_a_name_covers_itself_whatever_it_is_made_of(name: str) -> None:
    def entry(metric: str) -> Acknowledgement:
        return Acknowledgement.model_validate({**GOOD, "metric": metric, "until": "2027-01-31"})

    assert entry(name).covers(name)
    assert entry(metrics.pattern([name])).covers(name)
    assert not entry(metrics.pattern([name])).covers(name.replace("small", "large"))


def test_a_file_that_need_not_be_there_is_empty(tmp_path: Path) -> None:
    assert findings.read_acknowledgements(tmp_path / "none.yaml", MACHINE).entries == ()
    with pytest.raises(StoredError, match=r"none\.yaml: No such file"):
        findings.read_acknowledgements(tmp_path / "none.yaml", MACHINE, must=True)
    (tmp_path / "empty.yaml").write_text("# nothing yet\n")
    assert findings.read_acknowledgements(tmp_path / "empty.yaml", MACHINE).entries == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"metrik": "x"}, "acknowledgements[0].metrik: no such field"),
        ({"reason": None}, "acknowledgements[0].reason: this field is required"),
        ({"reason": '""'}, "acknowledgements[0].reason: "),
        ({"machine": "abc"}, "acknowledgements[0].machine: "),
        ({"until": "tomorrow"}, "acknowledgements[0].until: a day is written as in 2027-01-31"),
        ({"until": "2027-02-30"}, "acknowledgements[0].until: "),
        ({"who": "[x"}, "line "),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, fields: dict[str, str | None], words: str) -> None:
    file = written(tmp_path, **fields)
    with pytest.raises(StoredError, match=re.escape(f"{file}: {words}")):
        findings.read_acknowledgements(file, MACHINE)


def test_a_key_beside_the_acknowledgements_is_none(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_text(file.read_text() + "accepted: []\n")
    with pytest.raises(StoredError, match="accepted: no such field"):
        findings.read_acknowledgements(file, MACHINE)


@pytest.mark.parametrize("named", ["yesterday", night(13).run_id[:-1], night(99).run_id])
def test_a_night_that_does_not_exist_is_named(tmp_path: Path, named: str) -> None:
    found = findings.read_acknowledgements(written(tmp_path, first_night=named), MACHINE)
    nights = [night(number) for number in range(20)]
    nearest = ", ".join(one.run_id for one in nights[12:15])
    words = f"acknowledgements[0].first_night: there is no night {named!r} in the history of {MACHINE}"
    with pytest.raises(StoredError, match=re.escape(words)) as caught:
        found.check(nights)
    if named == night(13).run_id[:-1]:
        assert f"(nearest: {nearest})" in str(caught.value)


def test_a_history_that_was_lost_is_no_mistake(tmp_path: Path) -> None:
    found = findings.read_acknowledgements(written(tmp_path), MACHINE)
    found.check([])
    later = [night(number) for number in range(20, 25)]
    found.check(later)
    today = date(2026, 12, 1)
    assert found.of("small/A -> C/quiet/mean", 0, later, today) is None
    assert list(found.warnings(later, ["small/A -> C/quiet/mean"], today)) == [
        f"{found.file}: acknowledgements[0].first_night: {night(13).run_id!r} is from before this history"
    ]
