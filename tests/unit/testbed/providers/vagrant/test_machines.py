"""What is refused before any machine is touched, and what Vagrant's failures become."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from testbed.assembly import assemble
from testbed.providers.vagrant import machines, requirements
from testbed.providers.vagrant.machines import Machines, MachinesError, base_of, remove_unused_images
from testbed.scenario import Scenario, load
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"
CONTMEC = load(SCENARIOS / "contmec.yaml")


def exist(scenario: Scenario, states: Path) -> None:
    """Leave what machines of a scenario leave."""
    state = states / scenario.name
    state.mkdir()
    (state / "machines.yaml").write_text(machines.machines(scenario))


def program(directory: Path, name: str, script: str) -> None:
    """Put a program there."""
    (directory / name).write_text(f"#!/bin/sh\n{script}\n")
    (directory / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where all programs are that a test has, but the shell."""
    directory = tmp_path / "programs"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.setattr("testbed.resources.MACHINES", tmp_path / "states")
    for variable in ("VAGRANT_DEFAULT_PROVIDER", "CONCORDE_BOX", "CONCORDE_DRIVER", "LIBVIRT_DEFAULT_URI"):
        monkeypatch.delenv(variable, raising=False)
    return directory


def test_machines_of_the_same_nodes_may_have_other_sizes_and_rates(tmp_path: Path) -> None:
    exist(CONTMEC, tmp_path)
    other = load(SCENARIOS / "contmec.yaml", ["machine.memory=4096", "enforcement=none"], scale=0.1)
    Machines(other, tmp_path).agree()


@pytest.mark.parametrize(
    "override", ["nodes.worker-03={}", "underlay.cidr=192.168.57.0/24", "underlay.mtu=9000"]
)
def test_machines_that_were_made_otherwise_are_not_taken(override: str, tmp_path: Path) -> None:
    exist(CONTMEC, tmp_path)
    with pytest.raises(LookupError, match="down --provider vagrant --scenario contmec --destroy"):
        Machines(load(SCENARIOS / "contmec.yaml", [override]), tmp_path).agree()


def test_two_scenarios_need_two_networks(tmp_path: Path) -> None:
    exist(CONTMEC, tmp_path)
    with pytest.raises(
        LookupError, match=r"contmec have the network 192\.168\.56\.0/24.*--set underlay\.cidr="
    ):
        Machines(load(SCENARIOS / "kubernetes.yaml"), tmp_path).agree()
    Machines(load(SCENARIOS / "kubernetes.yaml", ["underlay.cidr=192.168.57.0/24"]), tmp_path).agree()


def test_machines_that_are_not_there(tmp_path: Path) -> None:
    machines = Machines(CONTMEC, tmp_path)
    with pytest.raises(LookupError, match="up --provider vagrant --scenario contmec"):
        machines.inventory()
    exist(load(SCENARIOS / "kubernetes.yaml"), tmp_path)
    for end in (machines.halt, machines.destroy):
        with pytest.raises(LookupError, match=r"no machines of scenario contmec \(of: kubernetes\)"):
            end()


def test_without_vagrant_nothing_is_started(programs: Path) -> None:
    with pytest.raises(
        LookupError, match="vagrant is not installed: apt-get install vagrant vagrant-libvirt"
    ):
        assemble(CONTMEC, "vagrant", "cni")


def test_a_source_makes_no_sense(programs: Path) -> None:
    with pytest.raises(LookupError, match="machines are the scenario's"):
        assemble(CONTMEC, "vagrant:hosts.yaml", "cni")


PLUGINS = """
    echo "1,,plugin-name,vagrant-libvirt"
    echo "1,vagrant-libvirt,plugin-version,0.11.2%!(VAGRANT_COMMA) system" """
NO_BOX = 'echo "1,,ui,warn,There are no installed boxes!"'
OUR_BOX = 'echo "1,,box-name,concorde/debian"; echo "1,,box-provider,libvirt"; echo "1,,box-version,12.0"'


@pytest.mark.parametrize(
    ("plugins", "boxes", "virsh", "words"),
    [
        ("true", OUR_BOX, "exit 0", ["no plugin for libvirt: apt-get install vagrant-libvirt"]),
        (PLUGINS, OUR_BOX, "echo no socket >&2; exit 1", ["libvirt does not answer", "no socket"]),
        (PLUGINS, NO_BOX, "exit 0", ["no box concorde/debian", "./invokew box.build"]),
        (PLUGINS, OUR_BOX, "exit 0", []),
    ],
    ids=["plugin", "libvirt", "box", "nothing"],
)
def test_what_is_missing_is_named(
    plugins: str, boxes: str, virsh: str, words: list[str], programs: Path
) -> None:
    program(programs, "vagrant", f'case "$1" in plugin) {plugins} ;; box) {boxes} ;; esac')
    program(programs, "virsh", virsh)
    found = list(requirements.missing())
    assert len(found) == bool(words)
    for each in words:
        assert each in found[0]


def test_another_hypervisor_needs_no_libvirt(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAGRANT_DEFAULT_PROVIDER", "virtualbox")
    monkeypatch.setenv("CONCORDE_BOX", "debian/bookworm64")
    program(programs, "vagrant", "exit 1")
    assert list(requirements.missing()) == []


@pytest.mark.parametrize(
    ("uri", "local"),
    [("qemu:///system", True), ("qemu+unix:///system", True), ("qemu+ssh://root@far/system", False)],
)
def test_processors_elsewhere_are_out_of_reach(
    uri: str, local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIBVIRT_DEFAULT_URI", uri)
    assert requirements.is_local() == local


def test_vagrants_own_words_are_in_the_error(programs: Path, tmp_path: Path) -> None:
    exist(CONTMEC, tmp_path)
    program(programs, "vagrant", 'echo "the domain is gone" >&2; exit 3')
    with pytest.raises(MachinesError, match="vagrant halt ended with 3") as caught:
        Machines(CONTMEC, tmp_path).halt()
    assert "the domain is gone" in str(caught.value)


def test_where_ruby_was_does_not_hide_vagrants_words(programs: Path, tmp_path: Path) -> None:
    exist(CONTMEC, tmp_path)
    where = "/usr/lib/ruby/vagrant/action.rb:48:in `call'"
    stack = f"{where}: no such host (Errno::ENOENT)\n" + f"\tfrom {where}\n{where}\n" * 20
    program(programs, "vagrant", f"/bin/cat >&2 <<'END'\nthe domain is gone\n\n{stack}END\nexit 3")
    with pytest.raises(MachinesError) as caught:
        Machines(CONTMEC, tmp_path).halt()
    said = str(caught.value).splitlines()[1:]
    assert said == ["the domain is gone", f"{where}: no such host (Errno::ENOENT)"]


@pytest.mark.parametrize(("status", "works"), [(33, True), (0, False), (134, False)])
def test_kvm_counts_when_a_guest_has_run(
    status: int, works: bool, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(programs, requirements.EMULATOR, f"exit {status}")
    monkeypatch.setattr(requirements, "DEVICE", Path(os.devnull))
    assert requirements.kvm_works() is works
    monkeypatch.setattr(requirements, "DEVICE", programs / "nothing")
    assert not requirements.kvm_works()


@pytest.mark.skipif(shutil.which(requirements.EMULATOR) is None, reason="needs QEMU")
def test_what_is_tried_is_right() -> None:
    assert requirements.runs("tcg", requirements.EMULATED["CONCORDE_CPU_MODEL"])


def test_the_base_of_a_disk() -> None:
    description = "<volume><backingStore><path>/images/a b.img</path></backingStore></volume>"
    assert base_of(description) == "/images/a b.img"
    assert base_of("<volume><name>a</name></volume>") is None


VIRSH = """
shift 3
case "$*" in
    "pool-list --name") echo default ;;
    "vol-list default")
        echo " concorde-VAGRANTSLASH-debian_vagrant_box_image_1_box.img  /i/1.img"
        echo " concorde-VAGRANTSLASH-debian_vagrant_box_image_2_box.img  /i/2.img"
        echo " disk.img  /i/disk.img" ;;
    "vol-dumpxml disk.img"*) echo "<volume><backingStore><path>/i/1.img</path></backingStore></volume>" ;;
    vol-dumpxml*) echo "<volume/>" ;;
    *) echo "$*" >>"$LOG" ;;
esac
"""


def test_a_copy_of_the_box_stays_as_long_as_a_disk_needs_it(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOG", str(programs / "log"))
    program(programs, "virsh", VIRSH)
    remove_unused_images("test:///default", "concorde/debian")
    assert (programs / "log").read_text().splitlines() == [
        "vol-delete concorde-VAGRANTSLASH-debian_vagrant_box_image_2_box.img --pool default"
    ]
