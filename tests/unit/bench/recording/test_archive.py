"""A packed recording has the same bytes and the same numbers; what is none is refused, and leaves nothing."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import random
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.analysis import summary
from bench.cli.verbs import experiments
from bench.console.statuses import HELD
from bench.observations.neighbours import Others, notes
from bench.pipeline import analyse
from bench.recording import archive, atomic, columns, directory
from bench.recording.archive import without_names
from bench.recording.atomic import StoredError
from bench.recording.directory import UNFINISHED, Recording
from bench.recording.records import Beginning
from bench.studies.matrix.index import Matrix, MatrixCase
from testbed.clusters.survey import Machine
from tests import cases
from tests.unit.bench.builders import DATA

RUN_ID = "20260101T000000Z-small-pod"
WHOLE = {f"{RUN_ID}/scenario.yaml": b"name: small\n", f"{RUN_ID}/raw/run.json": b"{}"}
OTHER = {path.replace("small", "other"): content for path, content in WHOLE.items()}


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a recording as a run leaves it today, analysed."""
    recording = Recording(Path(shutil.copytree(DATA / "held", tmp_path_factory.mktemp("analysed") / "held")))
    record = recording.run_record()
    beginning = Beginning(started_at=record.started_at, provider="ssh:/srv/ada/lab.yaml", orchestrator="cni")
    atomic.write_model(recording.beginning_file, beginning)
    record.files = directory.digests(recording)
    atomic.write_model(recording.run_file, record)
    analyse(recording)
    return recording.directory


@pytest.fixture
def held(analysed: Path, tmp_path: Path) -> Recording:
    """Return that recording, to be changed."""
    return Recording(Path(shutil.copytree(analysed, tmp_path / "held")))


def tar(files: Mapping[str, bytes], *others: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
        for other in others:
            made.addfile(other)
    return out.getvalue()


def of_kind(kind: bytes, name: str = f"{RUN_ID}/raw/other", target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def sparse(size: int) -> bytes:
    """Return an archive with a file of holes, as GNU tar writes one in the pax format."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as made:
        member = tarfile.TarInfo(f"{RUN_ID}/raw/x")
        member.pax_headers = {"GNU.sparse.size": str(size), "GNU.sparse.map": "0,0"}
        made.addfile(member)
    return out.getvalue()


def files_of(directory: Path) -> dict[str, bytes]:
    return {str(f.relative_to(directory)): f.read_bytes() for f in directory.rglob("*") if f.is_file()}


def below(directory: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{directory}/{path}": content for path, content in files.items()}


def test_the_same_recording_gives_the_same_bytes(held: Recording, tmp_path: Path) -> None:
    first = archive.pack(held.directory, tmp_path / "first")
    elsewhere = Path(shutil.copytree(held.directory, tmp_path / "copied" / "elsewhere"))
    for file in elsewhere.rglob("*"):
        file.chmod(0o700)
    second = archive.pack(elsewhere, tmp_path / "second")
    assert first.read_bytes() == second.read_bytes()


def test_what_is_packed_is_what_a_run_leaves_and_its_summary(held: Recording, tmp_path: Path) -> None:
    archive.pack(held.directory, tmp_path / "to")
    assert sorted(files_of(tmp_path / "to")) == ["packed.xz", "verdicts.json"]
    (row,) = atomic.read_json(tmp_path / "to" / "verdicts.json")
    assert (row["run_id"], row["verdict"]) == (held.run_record().run_id, "held")
    assert row["sha256"] == hashlib.sha256(held.summary_file.read_bytes()).hexdigest()
    unpacked = archive.unpack(tmp_path / "to", tmp_path / "reports")
    assert unpacked == tmp_path / "reports" / held.run_record().run_id
    assert set(files_of(unpacked)) == {*directory.digests(held), "raw/run.json", "raw/analysis.json"}


@pytest.mark.usefixtures("undrawn")
@pytest.mark.long(one_in=0)
def test_digests_agree_with_files_that_have_lost_a_name(held: Recording, tmp_path: Path) -> None:
    archive.pack(held.directory, tmp_path / "to")
    unpacked = Recording(archive.unpack(tmp_path / "to", tmp_path / "reports"))
    assert unpacked.beginning().provider == "ssh:lab.yaml"
    record = unpacked.run_record()
    assert record.files == directory.digests(unpacked)
    assert record.files != held.run_record().files
    again, before = analyse(unpacked), summary.read(held.summary_file)
    assert again.verdict == "held"
    assert summary.render(again.analysed(0.0)) == summary.render(before.analysed(0.0))


def test_a_recording_that_is_not_as_its_run_left_it_is_not_packed(held: Recording, tmp_path: Path) -> None:
    held.environment_file.write_text("{}")
    with pytest.raises(StoredError, match=r"environment\.json: it is not as the run left it"):
        archive.pack(held.directory, tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_a_recording_without_a_summary_is_not_packed(held: Recording, tmp_path: Path) -> None:
    for file in (held.analysis_file, held.summary_file):
        file.unlink()
        with pytest.raises(StoredError, match=rf"{file.name}: there is none; make it: \./invokew figures"):
            archive.pack(held.directory, tmp_path / "to")
    assert not (tmp_path / "to").exists()


def test_an_unfinished_one_no_one_and_itself_are_not_packed(held: Recording, tmp_path: Path) -> None:
    unfinished = held.directory.rename(tmp_path / "x.unfinished")
    with pytest.raises(LookupError, match="is not finished"):
        archive.pack(unfinished, tmp_path / "to")
    (tmp_path / "empty").mkdir()
    with pytest.raises(LookupError, match="there is no recording"):
        archive.pack(tmp_path / "empty", tmp_path / "to")
    with pytest.raises(LookupError, match="--to"):
        archive.pack(tmp_path / "empty", tmp_path / "empty")


@pytest.mark.long(one_in=0)
def test_figures_of_a_packed_recording_are_made_beside_the_other_runs(
    held: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive.pack(held.directory, tmp_path / "to")
    packed = files_of(tmp_path / "to")
    for named in ("to", "to/packed.xz"):  # the second time it is unpacked already
        assert experiments.draw_figures(str(tmp_path / named), tmp_path / "reports", {}) == HELD
    assert files_of(tmp_path / "to") == packed
    (unpacked,) = (tmp_path / "reports").iterdir()
    said = capsys.readouterr().out
    assert str(unpacked / "report.html") in said.replace("\n", "")
    # What is next is asked for where the recording is now.
    assert f" --reports {tmp_path / 'reports'}" in said.splitlines()[-1]
    for file in ("samples.parquet", "summary.json", "report.html", "figures/throughput.svg"):
        assert (unpacked / file).read_bytes()


def test_what_is_there_already_and_is_something_else_is_kept(held: Recording, tmp_path: Path) -> None:
    archive.pack(held.directory, tmp_path / "to")
    other = tmp_path / held.run_record().run_id
    other.mkdir()
    (other / "scenario.yaml").write_text("name: mine\n")
    with pytest.raises(LookupError, match="already exists, and differs from"):
        archive.unpack(tmp_path / "to", tmp_path)
    assert files_of(other) == {"scenario.yaml": b"name: mine\n"}


def test_a_study_is_packed_run_by_run_and_comes_back(held: Recording, tmp_path: Path) -> None:
    study, to = tmp_path / "20260101T000000Z-matrix", tmp_path / "reference" / "matrix"
    study.mkdir()
    name = held.run_record().run_id
    held.directory.rename(study / name)
    failed = Recording(study / f"{name}-2{UNFINISHED}")  # a run that failed: the index says why
    atomic.write(failed.scenario_file, b"name: small\n")
    cells = [MatrixCase(scenario="contmec", enforcement="pod", recording=name)]
    atomic.write_model(study / "matrix.json", Matrix(rows=cells))
    (study / "matrix.html").write_text("made again when wanted")
    beside = {"measured/all-1.json": b"[1]\n", "measured/one/cost-1.json": b"[2]\n"}
    for path, content in beside.items():
        atomic.write(study / path, content)

    assert experiments.pack(study.name, str(to), tmp_path) == HELD
    assert set(files_of(to)) == {"packed.xz", "verdicts.json", "matrix.json"}
    assert experiments.draw_figures(str(to), tmp_path / "reports", {}) == HELD
    made = files_of(tmp_path / "reports" / "matrix")
    assert made["matrix.json"] == (to / "matrix.json").read_bytes()
    assert {"matrix.html", "figures/matrix.svg", f"{name}/report.html"} <= made.keys()
    assert beside.items() <= made.items()
    assert json.loads(made[f"{name}/summary.json"])["verdict"] == "held"
    recorded = {path: made[f"{name}/{path}"] for path in archive.packed_recordings(to)[name]}
    assert files_of(archive.unpack(to / name, tmp_path / "one")) == recorded
    # As studies were packed before, a file for each; and before that, with what was measured as it was.
    (to / "packed.xz").unlink()
    atomic.write(to / name / archive.ARCHIVE, lzma.compress(tar(below(name, recorded))))
    atomic.write(to / archive.MEASURED, lzma.compress(tar(beside)))
    expected = beside | below(name, recorded) | {"matrix.json": made["matrix.json"]}
    assert files_of(archive.unpack(to, tmp_path / "from before")) == expected
    (to / archive.MEASURED).unlink()
    for path, content in beside.items():
        atomic.write(to / path, content)
    assert files_of(archive.unpack(to, tmp_path / "from the beginning")) == expected


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (WHOLE, "it is not a directory 'measured'"),
        ({**WHOLE, "measured/all-1.json": b""}, "it is not a directory 'measured'"),
        ({}, "it is not a directory 'measured'"),
        ({"measured/../all-1.json": b""}, "is not a file of a recording"),
        ({"measured/run.sh": b""}, "is not a file of a recording"),
    ],
)
def test_what_a_study_measured_is_nothing_else(files: dict[str, bytes], said: str, tmp_path: Path) -> None:
    atomic.write(tmp_path / "matrix" / "measured.tar.xz", lzma.compress(tar(files)))
    with pytest.raises(StoredError, match=rf"measured\.tar\.xz: no packed recording: .*{said}"):
        archive.unpack(tmp_path / "matrix", tmp_path / "reports")
    assert not (tmp_path / "reports").exists()


def test_runs_of_another_study_are_not_left_beside_those_that_are_packed(
    held: Recording, tmp_path: Path
) -> None:
    other = tmp_path / "to" / "earlier" / archive.ARCHIVE
    atomic.write(other, b"")
    with pytest.raises(LookupError, match="earlier"):
        archive.pack(held.directory, tmp_path / "to")
    assert files_of(tmp_path / "to") == {"earlier/recording.tar.xz": b""}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is cut off"),
        (b"PK\x03\x04 something else", "Input format not supported"),
        (lzma.compress(tar(WHOLE))[:-40], "it is cut off"),
        (lzma.compress(b"no tar" * 200), "invalid header|bad checksum"),
        (lzma.compress(tar(WHOLE)[:700]), "unexpected end of data"),
        (lzma.compress(tar({})), "it has no raw/run.json"),
        (lzma.compress(tar({f"{RUN_ID}/scenario.yaml": b""})), "it has no raw/run.json"),
        (lzma.compress(tar({**WHOLE, "other/raw/x": b""})), "it has no raw/run.json"),
        (lzma.compress(tar(WHOLE | OTHER)), "it has several directories"),
        (lzma.compress(columns.encode(WHOLE | OTHER)), "it has several directories"),
        (lzma.compress(columns.encode({**WHOLE, "../raw/x": b""})), "is not a file of a recording"),
        (lzma.compress(columns.encode(WHOLE)[:-1]), "it is cut off"),
        (lzma.compress(tar({**WHOLE, "/etc/passwd": b""})), "'/etc/passwd' is not a file of a recording"),
        (lzma.compress(tar({**WHOLE, f"{RUN_ID}/raw/../../x": b""})), "is not a file of a recording"),
        (lzma.compress(tar({**WHOLE, "../raw/x": b""})), "is not a file of a recording"),
        (lzma.compress(tar({**WHOLE, f"{RUN_ID}/raw/.x": b""})), "is not a file of a recording"),
        (lzma.compress(tar({**WHOLE, f"{RUN_ID}/raw/a\nb": b""})), r"'.*a\\nb' is not a file of a recording"),
        (lzma.compress(tar({**WHOLE, f"{RUN_ID}/raw/" + "x" * 300: b""})), "is not a file of a recording"),
        (lzma.compress(tar({**WHOLE, f"{RUN_ID}/report.html": b""})), "is not a file of a recording"),
        (lzma.compress(tar({**WHOLE, f"{RUN_ID}/raw/run.json/x": b""})), "is both a file and a directory"),
        (lzma.compress(tar({f"{RUN_ID}/raw/a/b": b"", f"{RUN_ID}/raw/a": b"", **WHOLE})), "is both a file"),
        (lzma.compress(tar({f"{RUN_ID}/raw": b"", **WHOLE})), "is both a file and a directory"),
        *(
            (
                lzma.compress(tar({path.replace(RUN_ID, name): b"" for path in WHOLE})),
                "not a recording's name",
            )
            for name in ("latest", "history", f"{RUN_ID}.unfinished", "small-pod", "20260101T000000Z-")
        ),
        (lzma.compress(tar(WHOLE, of_kind(tarfile.SYMTYPE, target="/etc"))), "is not a regular file"),
        (lzma.compress(tar(WHOLE, of_kind(tarfile.LNKTYPE, target="/etc/passwd"))), "is not a regular file"),
        (lzma.compress(tar(WHOLE, of_kind(tarfile.CHRTYPE))), "is not a regular file"),
        (lzma.compress(tar(WHOLE, of_kind(tarfile.FIFOTYPE))), "is not a regular file"),
        (lzma.compress(sparse(2**60)), "is not a regular file"),
    ],
)
def test_what_is_no_packed_recording_is_refused_and_leaves_nothing(
    content: bytes, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "some.tar.xz"
    file.write_bytes(content)
    with pytest.raises(LookupError, match=rf"some\.tar\.xz: no packed recording: .*({said})"):
        experiments.draw_figures(str(file), tmp_path / "reports", {})
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("name", ["latest", "20260101T000000Z-matrix.unfinished"])
def test_a_study_is_not_unpacked_under_a_name_that_means_something_else(name: str, tmp_path: Path) -> None:
    atomic.write(tmp_path / "from" / name / RUN_ID / archive.ARCHIVE, lzma.compress(tar(WHOLE)))
    with pytest.raises(StoredError, match=rf"a study cannot be called '{name}'"):
        archive.unpack(tmp_path / "from" / name, tmp_path / "reports")
    assert not (tmp_path / "reports").exists()


def test_a_run_of_a_packed_study_has_a_recording_s_name(tmp_path: Path) -> None:
    atomic.write(tmp_path / "matrix" / "latest" / archive.ARCHIVE, lzma.compress(tar(WHOLE)))
    with pytest.raises(StoredError, match="'latest' is not a recording's name"):
        archive.unpack(tmp_path / "matrix", tmp_path / "reports")
    assert not (tmp_path / "reports").exists()


def test_an_archive_that_grows_beyond_measure_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 2**20)
    file = tmp_path / "some.tar.xz"
    file.write_bytes(lzma.compress(bytes(2**20 + 1)))
    with pytest.raises(StoredError, match="it holds more than 1048576 bytes"):
        archive.unpack(file, tmp_path / "reports")
    assert list(tmp_path.iterdir()) == [file]


def test_damage_within_an_archive_is_never_worse_than_an_error(tmp_path: Path) -> None:
    whole, generator = tar(WHOLE), random.Random(cases.seed())
    for number in range(300):
        damaged = bytearray(whole)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(2048)] = generator.randrange(256)
        file = tmp_path / "some.tar.xz"
        file.write_bytes(lzma.compress(bytes(damaged), preset=0))
        reports = tmp_path / f"reports-{number}"
        try:
            unpacked = archive.unpack(file, reports)
        except StoredError:
            assert not reports.exists()
        else:
            assert [unpacked.name, "raw", "scenario.yaml"] == [
                *(each.name for each in reports.iterdir()),
                *sorted(each.name for each in unpacked.iterdir()),
            ]


def test_an_unpacking_that_fails_leaves_nothing(
    held: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.pack(held.directory, tmp_path / "to")
    write, written = atomic.write, []

    def fails_at_the_third(file: Path, content: bytes) -> None:
        written.append(file)
        if len(written) == 3:
            raise OSError(28, "No space left on device", str(file))
        write(file, content)

    monkeypatch.setattr(atomic, "write", fails_at_the_third)
    with pytest.raises(OSError, match="No space left"):
        archive.unpack(tmp_path / "to", tmp_path / "reports")
    assert list((tmp_path / "reports").iterdir()) == []


OUTPUT = "raw/repetition-0/a.sender.json"
NODE = {
    "metadata": {"name": "lab-7"},
    "spec": {"podCIDR": "172.16.1.0/24"},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [
            {"type": "InternalIP", "address": "192.0.2.7"},
            {"type": "Hostname", "address": "lab-7.example.org"},
        ],
        "nodeInfo": {"machineID": "d1ad", "systemUUID": "d1ae", "bootID": "bd90", "osImage": "Debian"},
    },
}


def masked(path: str, text: str) -> str:
    return without_names(path, text.encode()).decode()


def test_iperf3_tells_a_kernel_and_no_host() -> None:
    said = '"system_info":\t"Linux lab-7.example.org 6.1.0 #1 SMP x86_64"'
    assert masked(OUTPUT, said) == '"system_info":\t"Linux host 6.1.0 #1 SMP x86_64"'


def test_real_output_loses_one_line_only() -> None:
    before = (DATA / "held/raw/repetition-0/1-a-1-a-4.sender.json").read_text().splitlines()
    after = masked(OUTPUT, "\n".join(before)).splitlines()
    assert ["system_info" in new for old, new in zip(before, after, strict=True) if old != new] == [True]


def test_nodes_of_a_cluster_have_neither_names_nor_what_is_unique_to_a_machine() -> None:
    facts = {"clusters": {"a": {"nodes": {"worker-01": dict(Machine.read(NODE).facts)}}}}
    found = json.loads(masked("environment.json", json.dumps(facts, indent=1)))
    assert found["clusters"]["a"]["nodes"]["worker-01"] == {
        "name": "host",
        "addresses": {"InternalIP": "192.0.2.7", "Hostname": "host"},
        "pod_cidr": "172.16.1.0/24",
        "info": {"machineID": "", "systemUUID": "", "bootID": "", "osImage": "Debian"},
    }


def test_runs_beside_ours_were_nobodys() -> None:
    (note,) = notes(Others(frozenset({"process 17 of user ada"}), False), Others(frozenset(), False))
    for path in ("raw/run.json", "raw/repetition-0/finished.json", "summary.json"):
        assert masked(path, json.dumps([note])) == json.dumps([note.replace("ada", "unnamed")])


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("ssh:/srv/ada/lab/inventory.yaml", "ssh:inventory.yaml"),
        ("ssh:/home/ada/inventory.yaml", "ssh:inventory.yaml"),
        ("existing:a=/root/a.conf,b=/home/ada/.kube/b.conf", "existing:a=a.conf,b=b.conf"),
        ("ssh:lab/inventory.yaml", "ssh:lab/inventory.yaml"),
        ("netns", "netns"),
    ],
)
@pytest.mark.parametrize("path", ["raw/beginning.json", "asked.json"])
def test_of_what_a_run_was_given_the_files_names_are_left(path: str, given: str, left: str) -> None:
    said = json.dumps({"started_at": "2026-01-01T00:00:00+00:00", "provider": given}, indent=1)
    assert json.loads(masked(path, said)) == json.loads(said) | {"provider": left}


def test_a_home_is_nobodys_anywhere() -> None:
    assert masked(OUTPUT, "cannot read /home/ada/x, /root/y") == "cannot read ~/x, ~/y"


def test_paths_of_the_system_and_what_is_no_text_stay() -> None:
    for text in ('"subnetFile": "/run/flannel/subnet-a.env"', '"root": true', '"raw/run.json": "0f"'):
        assert masked("environment.json", text) == masked("raw/run.json", text) == text
    assert without_names(OUTPUT, b"\xff/home/ada/x") == b"\xff/home/ada/x"
