import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.access.place import CommandError, held_back
from testbed.providers.netns.sandbox import Claim, Sandbox, SandboxError
from tests.paths import ROOT
from tests.system.conftest import all_gone, pid_namespace
from tests.waiting import PATIENCE, until

STARTER = """
import sys, time
from testbed.providers.netns.sandbox import Sandbox
box = Sandbox.start("orphan.test")
box.add_nodes(["n"])
box.node("n").start(["sleep", "1000"], stdout=__import__("pathlib").Path("/dev/null"),
                    stderr=__import__("pathlib").Path("/dev/null"))
print(box.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.usefixtures("untouched_host")
def test_nodes_are_apart_from_each_other_and_from_the_host() -> None:
    box = Sandbox.start("apart.test")
    try:
        box.add_nodes(["one", "two"])
        box.node("one").run(["ip", "link", "add", "only-here", "type", "bridge"])
        box.node("one").run(["tee", "/run/file"], stdin="one")
        redirects = "/proc/sys/net/ipv4/conf/{all,only-here}/send_redirects"
        assert box.node("one").run(["bash", "-c", f"cat {redirects}"]).stdout == "0\n0\n"
        names = [link["ifname"] for link in box.node("two").run(["ip", "-j", "link"]).json()]
        assert "only-here" not in names
        assert box.node("two").run(["cat", "/run/file"], check=False).status != 0
        assert box.node("one").run(["cat", "/run/file"]).stdout == "one"
        assert not Path("/sys/class/net/only-here").exists()
    finally:
        box.stop()


def test_stop_ends_every_process_of_the_sandbox(tmp_path: Path) -> None:
    box = Sandbox.start("stop.test")
    box.add_nodes(["n"])
    namespace = pid_namespace(box.pid)
    process = box.node("n").start(["sleep", "1000"], stdout=tmp_path / "out", stderr=tmp_path / "err")
    box.stop()
    assert process.wait(timeout=PATIENCE) is not None
    assert all_gone(namespace)
    box.stop()  # again is fine


def test_a_held_command_begins_when_it_is_released_and_not_before(tmp_path: Path) -> None:
    box = Sandbox.start("held.test")
    out, err = tmp_path / "out", tmp_path / "err"
    try:
        box.add_nodes(["n"])
        node = box.node("n")
        held = node.start(held_back(["sh", "-c", "echo begun; cat"]), stdout=out, stderr=err, held=True)
        until(lambda: err.read_text() == "\n")  # it is in its place
        assert held.wait(timeout=0.2) is None
        assert out.read_text() == ""
        held.release()
        assert held.wait(timeout=PATIENCE) == 0  # its own standard input is empty
        assert out.read_text() == "begun\n"
        never = node.start(held_back(["echo", "begun"]), stdout=out, stderr=err, held=True)
        never.kill()
        assert out.read_text() == ""
    finally:
        box.stop()


@pytest.mark.usefixtures("untouched_host")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
@pytest.mark.long(one_in=3)
def test_a_sandbox_ends_with_the_process_that_started_it(how: signal.Signals) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    namespace = pid_namespace(pid)
    watch = os.pidfd_open(pid)
    starter.send_signal(how)
    starter.communicate()
    ended, _, _ = select.select([watch], [], [], PATIENCE)
    os.close(watch)
    assert ended, "the sandbox outlived its starter"
    assert all_gone(namespace)


def test_a_failed_command_says_where_and_what() -> None:
    box = Sandbox.start("words.test")
    try:
        with pytest.raises(
            CommandError, match=r"switch: ip link show nothing ended with 1: .*does not exist"
        ):
            box.switch.run(["ip", "link", "show", "nothing"])
        with pytest.raises(CommandError, match=r"no end: still running after 0.1 s"):
            box.switch.run(["sleep", "100"], timeout=0.1)
        assert box.switch.run(["false"], check=False).status == 1
    finally:
        box.stop()


def test_what_the_caller_has_in_its_environment_stays_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    box = Sandbox.start("environment.test")
    try:
        assert "SECRET" not in box.switch.run(["env"]).stdout
    finally:
        box.stop()


def test_only_one_process_brings_up_a_name() -> None:
    name = f"claimed-{os.getpid()}"  # others on this machine may run these tests, too
    with Claim(name), pytest.raises(SandboxError, match="just bringing up"):
        Claim(name)
    with Claim(name):
        pass


NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="these tests already run as an ordinary user")
def test_an_ordinary_user_needs_no_sudo(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same sandbox as another user: in a user namespace, with a copy of the code that user can read."""
    home = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    try:
        for part in ("access", "providers/netns", "scenario"):
            shutil.copytree(ROOT / "testbed" / part, home / "testbed" / part)
        for file in (home, *home.rglob("*")):
            file.chmod(0o755)
        script = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from testbed.providers.netns.sandbox import Sandbox\n"
            "box = Sandbox.start('ordinary.test'); box.add_nodes(['n'])\n"
            "node = box.node('n')\n"
            "node.run(['ip', 'link', 'add', 'name', 'd', 'type', 'veth', 'peer', 'name', 'e'])\n"
            "node.run(['tc', 'qdisc', 'add', 'dev', 'd', 'root', 'handle', '1:', 'htb'])\n"
            "node.run(['tee', '/proc/sys/net/ipv4/ip_forward'], stdin='1')\n"
            "node.run(['nft', 'add', 'table', 'ip', 't'])\n"
            "node.run(['ip', 'netns', 'add', 'pod'])\n"
            "print(node.run(['tc', '-j', 'qdisc', 'show', 'dev', 'd']).json()[0]['kind'])\n"
            "box.stop()\n"
        )
        done = subprocess.run(
            ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
             "/usr/bin/python3", "-I", "-c", script, str(home)],
            capture_output=True, text=True, check=False, cwd="/",
        )  # fmt: skip
    finally:
        shutil.rmtree(home)
    if "unshare" in done.stderr and "not permitted" in done.stderr:
        pytest.skip(f"user namespaces are not allowed here: {done.stderr}")
    assert done.stdout == "htb\n", done.stderr
