"""Claims on trial, with commands that make no traffic: they leave summaries that are kept."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bench.console.statuses import HELD, INVALID, VIOLATED
from bench.studies.reproduction import claims, pages, regeneration, verbs
from bench.studies.reproduction.claims import Claim, Claims, Expected, Unfit
from bench.studies.reproduction.regeneration import Kept
from testbed import registry
from tests.paths import CONTMEC_SUMMARY

KNOWN = claims.read()
CONTMEC = KNOWN.named(["figure-13"])[0]
# Stands in for a verb that measures: it leaves a summary below --reports, and notes that it was run.
PROGRAM = """
import json, pathlib, sys
directory = pathlib.Path(sys.argv[-1], "run")
directory.mkdir(parents=True)
summary = json.loads(pathlib.Path({kept!r}).read_text())
summary["verdict"] = {verdict!r}
(directory / "summary.json").write_text(json.dumps(summary))
with open({log!r}, "a") as log:
    print({verdict!r}, file=log)
sys.exit({status})
"""

Make = Callable[..., Claim]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return what makes a claim whose command leaves a summary with a verdict, and ends with a status."""

    def claim(name: str, verdict: str = "held", status: int = 0, **fields: object) -> Claim:
        kept = str(CONTMEC_SUMMARY)
        program = tmp_path / f"{verdict}-{status}.py"
        log = str(tmp_path / "log")
        program.write_text(PROGRAM.format(kept=kept, verdict=verdict, log=log, status=status))
        command = shlex.join([sys.executable, str(program)])
        return CONTMEC.model_copy(update={"id": name, "command": command, "quick": command, **fields})

    return claim


@pytest.fixture
def made_here(
    undrawn: None, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Let recordings be made again in this process, which has imported all that takes; undrawn."""

    def again(directories: Sequence[Path], *_: object) -> Iterator[Kept]:
        scratch = tmp_path_factory.mktemp("again")
        return (regeneration.make(directory, scratch) for directory in directories)

    monkeypatch.setattr(regeneration, "again", again)


def following(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The words of the command that is said last of all."""
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("next: ")
    return shlex.split(last.removeprefix("next: "))


def test_a_command_is_run_once_for_all_its_claims(make: Make, tmp_path: Path) -> None:
    wanted = [make("one"), make("two"), make("other", "violated", 1)]
    tried = {one.claim.id: one.outcome for one in claims.again(wanted, tmp_path / "to", False, 1, print)}
    assert tried == {"one": "confirmed", "two": "confirmed", "other": "outside"}
    assert sorted((tmp_path / "log").read_text().split()) == ["held", "violated"]


def test_the_seed_decides_the_order(make: Make, tmp_path: Path) -> None:
    wanted = [make(verdict, verdict) for verdict in ("held", "violated", "invalid")]
    orders = []
    for number, seed in enumerate((1, 1, 4, 5)):
        list(claims.again(wanted, tmp_path / f"to-{number}", True, seed, lambda _: None))
        orders.append((tmp_path / "log").read_text())
        (tmp_path / "log").unlink()
    assert orders[0] == orders[1]
    assert len(set(orders)) > 1
    seeded = make("x").model_copy(update={"command": "./invokew matrix --seed {seed}"})
    assert claims.command_of(seeded, False, 7) == "./invokew matrix --seed 7"


def test_a_command_that_measures_nothing_is_an_error(make: Make, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="it ended with status 4"):
        list(claims.again([make("one", status=4)], tmp_path / "to", False, 1, print))
    with pytest.raises(LookupError, match="there is no run of 'contmec' with enforcement 'node'"):
        list(claims.again([make("one", enforcement="node")], tmp_path / "to-2", False, 1, print))


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [(["held"], HELD), (["held", "invalid"], INVALID), (["violated", "invalid", "held"], VIOLATED)],
)
def test_how_it_ends(
    verdicts: list[str],
    status: int,
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = tuple(make(verdict, verdict) for verdict in verdicts)
    elsewhere = make("elsewhere", status=4, machine="virtual")
    known = Claims(machines=KNOWN.machines, claims=(*found, elsewhere))
    monkeypatch.setattr(claims, "read", lambda: known)
    assert verbs.reproduce([], False, True, False, 1, tmp_path / "reports") == status
    (directory,) = (tmp_path / "reports").iterdir()
    assert directory.name.endswith("-reproduction")
    assert len(list(directory.rglob("summary.json"))) == len(verdicts)
    program, verb, *words = following(capsys)
    assert program == "./invokew"
    if status == HELD:
        assert [verb, *words] == ["reproduce", "--reports", str(tmp_path / "reports")]
    else:
        assert verb == "figures"
        decided = {VIOLATED: "violated", INVALID: "invalid"}[status]
        assert json.loads(Path(words[0], "summary.json").read_text())["verdict"] == decided


@pytest.mark.usefixtures("made_here")
def test_what_is_claimed_is_what_the_kept_recordings_show(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = (Expected(what="share", value=2.0), Expected(what="verdict", value="held"))
    wrong = CONTMEC.model_copy(update={"id": "wrong", "expected": other})
    known = Claims(machines=KNOWN.machines, claims=(CONTMEC, wrong))
    monkeypatch.setattr(claims, "read", lambda: known)
    assert verbs.reproduce([], True, False, False, 1, tmp_path) == VIOLATED
    said = capsys.readouterr().out
    assert "figure-13: confirmed" in said
    assert "wrong: outside" in said
    assert "1 confirmed, 1 outside, 0 invalid" in said
    doubted = str(claims.REFERENCE / CONTMEC.recording)
    assert said.endswith(f"next: ./invokew figures {doubted} --reports {tmp_path}\n")


@pytest.mark.usefixtures("made_here")
def test_claims_that_are_confirmed_lead_to_what_has_not_been_tried(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """From what is kept to this machine, first quickly, and on to claims that need another one."""
    kept = make("kept").model_copy(update={"recording": CONTMEC.recording})
    monkeypatch.setattr(claims, "read", lambda: Claims(machines=KNOWN.machines, claims=(kept,)))
    said = []
    for recorded, quick in ((True, False), (False, True), (False, False)):
        assert verbs.reproduce(["kept"], recorded, quick, False, 1, tmp_path) == HELD
        said.append(shlex.join(following(capsys)))
    assert said == [
        f"./invokew reproduce --claim kept --quick --reports {tmp_path}",
        f"./invokew reproduce --claim kept --reports {tmp_path}",
        "./invokew reproduce --list",
    ]


@pytest.mark.usefixtures("made_here")
@pytest.mark.long(one_in=0)
def test_what_is_not_recorded_yet_is_said_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    later = CONTMEC.model_copy(update={"id": "later", "recording": "moon"})
    unfit = (Unfit(recording="moon", reason="nobody was there", missing=True),)
    known = Claims(machines=KNOWN.machines, claims=(CONTMEC, later), unfit=unfit)
    monkeypatch.setattr(claims, "read", lambda: known)
    assert verbs.reproduce([], True, False, False, 1, tmp_path) == HELD
    said = capsys.readouterr().out
    assert "not recorded: moon: nobody was there\n" in said
    assert "1 confirmed" in said
    with pytest.raises(LookupError, match="moon: there is no such recording"):
        verbs.reproduce(["later"], True, False, False, 1, tmp_path)
    assert "recorded in [moon]" not in pages.render(known)
    assert "not recorded yet: scenario" in pages.render(known)


@pytest.mark.usefixtures("made_here")
@pytest.mark.long(one_in=0)
def test_a_run_of_several_is_meant_by_its_number(tmp_path: Path) -> None:
    other = CONTMEC.model_copy(update={"run": 1})
    with pytest.raises(LookupError, match="there is no run of 'contmec' with enforcement 'pod'"):
        list(claims.recorded([other], claims.REFERENCE, registry.load))


def test_a_claim_that_does_not_exist_is_named_before_anything_is_started(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match=r"no claim 'figure-99' \(claims: figure-13"):
        verbs.reproduce(["figure-99"], False, True, False, 1, tmp_path)
    with pytest.raises(LookupError, match="no quick command"):
        verbs.reproduce(["machines-contmec"], False, True, False, 1, tmp_path)
    with pytest.raises(LookupError, match="are mutually exclusive"):
        verbs.reproduce([], True, True, False, 1, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_list_has_every_claim_and_its_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert verbs.reproduce([], False, False, True, 1, tmp_path) == HELD
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [claim.id for claim in KNOWN.claims]
    assert "./invokew bench --scenario contmec --repetitions 5" in lines[0]


@pytest.mark.long(one_in=0)
def test_every_claim_that_is_kept_is_confirmed(tmp_path: Path) -> None:
    assert verbs.reproduce([], True, False, False, 1, tmp_path) == HELD
