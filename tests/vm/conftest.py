"""What tests on virtual machines share: libvirt, the box, and what this machine must be like after.

Without systemd nobody starts libvirt; then it is started here, and ended after, by its process.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testbed.providers.vagrant import requirements
from testbed.resources import MACHINES
from testbed.scenario import load, render_yaml
from testbed.supplies.box import NAME
from tests.paths import ROOT

BUS = Path("/run/dbus/system_bus_socket")
START_SECONDS = 60
MOST_SECONDS = 4 * 3600  # of a test; where processors are emulated, machines take an hour
QEMU_CONF = "/etc/libvirt/qemu.conf"
# Becomes a command ($3 and what follows) from which nobody may write to /dev/kvm ($2), root included: a file
# ($1) lies over it. The file lies over libvirt's settings too, and says that guests see the host's /dev:
# libvirt cannot make them one of their own where something lies in it.
HIDE = f"""
mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" && mount --bind "$1" {QEMU_CONF} || exit
shift 2
exec "$@"
"""
NAME_OF_TEST = "vm-test"  # what the machines of these tests are known by
NAMED = (f"name={NAME_OF_TEST}", "underlay.cidr=192.168.158.0/24")
ATTEMPTS = 2  # a saturated machine proves nothing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(MOST_SECONDS))


def invoke(*arguments: str, seconds: float = 3600) -> subprocess.CompletedProcess[str]:
    """Run a command of the project's, as a user does."""
    return subprocess.run(
        [sys.executable, "tasks.py", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds,
    )  # fmt: skip


def judged(reports: Path, *arguments: str) -> dict[str, Any]:
    """Run `bench`, and again if the run is invalid; return what the last one's summary says."""
    for attempt in range(ATTEMPTS):
        into = reports / str(attempt)
        done = invoke("bench", *arguments, "--retry", "0", "--reports", str(into))
        recordings = list(into.glob("*-pod"))
        assert len(recordings) == 1, done.stdout + done.stderr
        summary: dict[str, Any] = json.loads((recordings[0] / "summary.json").read_text())
        assert done.returncode == {"held": 0, "violated": 1, "invalid": 3}[summary["verdict"]], done.stderr
        if summary["verdict"] != "invalid":
            break
    return summary


def skip_if_invalid(summary: dict[str, Any]) -> None:
    """Skip a test at its end if its run was invalid to the last."""
    if summary["verdict"] == "invalid":
        pytest.skip(f"invalid {ATTEMPTS} times, so this machine cannot tell: {summary['reasons']}")


def virsh(*arguments: str) -> str:
    """Ask libvirt."""
    done = subprocess.run(
        ["virsh", "--connect", requirements.uri(), "--quiet", *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def libvirt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A libvirt that answers, with a place for disks."""
    if os.geteuid() != 0:
        pytest.skip("machines are made by root here")
    for program in ("vagrant", "virsh", "qemu-system-x86_64"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed; see docs/howto/virtual-machines.md")
    with ExitStack() as started:
        if not _answers():
            _start(started, tmp_path_factory.mktemp("libvirt"))
        if "default" not in virsh("pool-list", "--all", "--name").split():
            images = "/var/lib/libvirt/images"
            virsh("pool-define-as", "default", "dir", "--target", images)
            started.callback(virsh, "pool-undefine", "default")
            virsh("pool-start", "default")
            started.callback(virsh, "pool-destroy", "default")
        yield


def _answers() -> bool:
    asked = ["virsh", "--connect", requirements.uri(), "--quiet", "version"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def _bus_answers() -> bool:
    """Tell whether the system's bus runs; its socket outlives it."""
    with socket.socket(socket.AF_UNIX) as bus:
        return bus.connect_ex(str(BUS)) == 0


def _start(started: ExitStack, directory: Path) -> None:
    """Start what libvirt is made of; ``directory``: for files of ours."""
    if not _bus_answers():
        BUS.parent.mkdir(exist_ok=True)
        _launch(started, ["dbus-daemon", "--system", "--nofork", "--nopidfile"], _bus_answers)
    _launch(started, ["/usr/sbin/virtlogd"])
    _launch(started, [*_without_unusable_kvm(directory), "/usr/sbin/libvirtd"], _answers)


def _launch(started: ExitStack, argv: list[str], answers: Callable[[], bool] = lambda: True) -> None:
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started.callback(process.wait)
    started.callback(process.terminate)
    deadline = time.monotonic() + START_SECONDS
    while not answers():
        assert time.monotonic() < deadline, f"{shlex.join(argv)} does not answer"
        time.sleep(0.2)


def _without_unusable_kvm(directory: Path) -> list[str]:
    """Return what hides KVM's device from a program if it is of no use; the host keeps it.

    As long as libvirt may write to it, it tries at every call whether QEMU can use it now, for 4 to 15 s.
    """
    if not requirements.DEVICE.exists() or requirements.kvm_works():
        return []
    settings = directory / "qemu.conf"
    settings.write_text("namespaces = []\n")
    return ["unshare", "--mount", "sh", "-c", HIDE, "sh", str(settings), str(requirements.DEVICE)]


@pytest.fixture(scope="session")
def box(libvirt: None) -> str:
    """Provide the box; build it if Vagrant does not have it."""
    listed = subprocess.run(["vagrant", "box", "list"], capture_output=True, text=True, check=True).stdout
    if NAME not in listed:
        built = invoke("box.build")
        assert built.returncode == 0, built.stderr
    return NAME


def made() -> dict[str, set[str]]:
    """Return what there is of machines of ours, whose things all have our name; others' come and go."""

    def ours(*question: str) -> set[str]:
        names = (line.split()[0] for line in virsh(*question).splitlines() if line.strip())
        return {name for name in names if "concorde" in name}

    return {
        "domains": ours("list", "--all", "--name"),
        "networks": ours("net-list", "--all", "--name"),
        "volumes": ours("vol-list", "default"),
        "states": {each.name for each in MACHINES.glob("*")},
    }


@pytest.fixture
def nothing_left(box: str) -> Iterator[None]:
    """See to it that a test leaves nothing of its machines."""
    before = made()
    yield
    assert {kind: new for kind, now in made().items() if (new := now - before[kind])} == {}


@pytest.fixture
def scenario_file(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes a scenario down, for machines with a name and a network of their own."""

    def written(name: str, *overrides: str, scale: float) -> Path:
        file = tmp_path / f"{NAME_OF_TEST}.yaml"
        scenario = load(ROOT / "scenarios" / f"{name}.yaml", (*NAMED, *overrides), scale)
        file.write_text(render_yaml(scenario))
        return file

    return written
