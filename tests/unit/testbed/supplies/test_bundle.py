from __future__ import annotations

from pathlib import Path

import pytest

from testbed import resources
from testbed.supplies import addresses, binaries, bundle, getting, images, names, services
from testbed.supplies.binaries import Binaries
from tests.unit.testbed.supplies.builders import MakePrograms, write_program


@pytest.fixture
def kept(make_programs: MakePrograms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Binaries:
    """Kept programs, on a machine that has everything else as well."""
    for directory, tools in (
        ("searched", [*images.TOOLS, *addresses.TOOLS, *services.TOOLS, *names.TOOLS, "etcd"]),
        ("reference", list(bundle.REFERENCE)),
    ):
        (tmp_path / directory).mkdir()
        for name in dict.fromkeys(tools):
            write_program(tmp_path / directory / name, name)
    monkeypatch.setattr(images, "SEARCHED", str(tmp_path / "searched"))
    monkeypatch.setattr(resources, "REFERENCE_PLUGINS", (str(tmp_path / "reference"),))
    monkeypatch.setattr(addresses, "LIBRARY", f"print({str(tmp_path / 'reference')!r})")  # Python's is large
    return getting.get("1.20.2", getting.from_directory(make_programs()))


def test_a_bundle_has_what_kubeadm_asks_for_by_name(kept: Binaries, tmp_path: Path) -> None:
    made = bundle.make(kept, tmp_path / "bundle")
    assert [one.name for one in made.for_control_planes] == [
        "testbed.local/etcd:1",
        "testbed.local/kube-apiserver:v1.20.2",
        "testbed.local/kube-controller-manager:v1.20.2",
        "testbed.local/kube-scheduler:v1.20.2",
    ]
    assert [one.name for one in made.for_pods] == [images.PAUSE, images.TRAFFIC]
    assert (made.for_addresses.name, made.for_services.name) == (addresses.IMAGE, services.IMAGE)
    assert made.below("bin") == ["bin/kubeadm", "bin/kubectl", "bin/kubelet"]
    assert not made.has_flanneld
    assert all((made.directory / file).stat().st_mode & 0o111 for file in made.below("cni"))


def test_a_bundle_is_made_again_in_place_of_itself_and_is_the_same(kept: Binaries, tmp_path: Path) -> None:
    first = bundle.make(kept, tmp_path / "bundle")
    manifest = (first.directory / bundle.MANIFEST).read_text()
    assert bundle.make(kept, tmp_path / "bundle") == first
    assert (first.directory / bundle.MANIFEST).read_text() == manifest
    assert [file.name for file in tmp_path.glob(".bundle-*")] == []


def test_flanneld_is_in_the_bundle_if_it_is_kept(kept: Binaries, tmp_path: Path) -> None:
    write_program(tmp_path / "flanneld", "v0.25.1")
    getting.get("1.20.2", flanneld=tmp_path / "flanneld")
    assert bundle.make(binaries.find(), tmp_path / "bundle").has_flanneld


def test_a_directory_of_somebody_elses_is_left_alone(kept: Binaries, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "letter").write_text("dear")
    with pytest.raises(LookupError, match="is neither empty nor a bundle"):
        bundle.make(kept, tmp_path / "own")
    assert (tmp_path / "own" / "letter").read_text() == "dear"


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        ("missing", "has no bin/kubelet"),
        ("changed", "changed files: bin/kubelet"),
        ("no manifest", "has no manifest.json"),
        ("damaged", "manifest.json is damaged"),
    ],
)
def test_what_is_not_the_bundle_that_was_made_is_refused(
    kept: Binaries, tmp_path: Path, harm: str, words: str
) -> None:
    made = bundle.make(kept, tmp_path / "bundle")
    match harm:
        case "missing":
            (made.directory / "bin" / "kubelet").unlink()
        case "changed":
            (made.directory / "bin" / "kubelet").write_text("another")
        case "no manifest":
            (made.directory / bundle.MANIFEST).unlink()
        case "damaged":
            (made.directory / bundle.MANIFEST).write_text("{}")
    with pytest.raises(LookupError, match=words) as refused:
        bundle.read(made.directory)
    assert f"{bundle.MAKE} {made.directory}" in str(refused.value)
