"""Commands, files and what can go wrong on the way, with a real sshd at the other end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.access.place import CommandError, Place, Process, held_back, in_parallel
from testbed.access.remote import Remote
from testbed.providers.ssh import connection
from testbed.providers.ssh.connection import ConnectError, Connection
from testbed.providers.ssh.inventory import Machine
from testbed.providers.ssh.node import LOST, SshNode
from testbed.scenario import load
from tests.paths import ROOT
from tests.system.testbed import machines
from tests.system.testbed.machines import Machines
from tests.waiting import PATIENCE, until

SCENARIOS = ROOT / "scenarios"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    machines.require()
    with Machines(
        load(SCENARIOS / "kubernetes.yaml"), tmp_path_factory.mktemp("machines"), sessions=3, sudo="ALL"
    ).lent() as up:
        yield up


@pytest.fixture
def machine(there: Machines) -> Machine:
    return Machine("worker-01", there.address("worker-01"), "root", 22, there.key, None, there.known_hosts)


@pytest.fixture
def node(machine: Machine) -> Iterator[SshNode]:
    way = Connection(machine)
    node = SshNode(way, "tests")
    node.prepare()
    yield node
    way.close()


def refusal(machine: Machine) -> str:
    with pytest.raises(ConnectError) as caught:
        connection.connect(machine)
    assert str(caught.value).startswith(f"worker-01: {machine}: ")
    return str(caught.value)


def test_a_wrong_key(machine: Machine, there: Machines, tmp_path: Path) -> None:
    wrong = there.directory / "worker-02.key"
    words = refusal(replace(machine, key=wrong))
    assert f"does not let root in: the key {wrong} was refused" in words
    assert "there is no key" in refusal(replace(machine, key=tmp_path / "none"))


def test_an_unknown_host_key(machine: Machine, tmp_path: Path) -> None:
    words = refusal(replace(machine, known_hosts=tmp_path / "empty"))
    assert "its host key is not known: ssh-ed25519 SHA256:" in words
    assert f"ssh-keyscan -p 22 {machine.host} >>{tmp_path / 'empty'}" in words


def test_a_changed_host_key(machine: Machine, there: Machines, tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    other = (there.directory / "worker-02.key.pub").read_text()
    file.write_text(f"{machine.host} {other}")
    words = refusal(replace(machine, known_hosts=file))
    assert "its host key has changed: it shows SHA256:" in words
    assert f"ssh-keygen -R '{machine.host}' -f {file}" in words


def test_a_port_at_which_nothing_listens(machine: Machine) -> None:
    assert "refused: nothing listens at port 23" in refusal(replace(machine, port=23))


def test_an_address_to_which_there_is_no_way(machine: Machine) -> None:
    assert "unreachable: Network is unreachable" in refusal(replace(machine, host="10.9.9.9"))


def test_a_name_that_nobody_knows(machine: Machine) -> None:
    assert "no address is known for this name" in refusal(replace(machine, host="nowhere.invalid"))


def test_a_machine_that_does_not_answer(
    machine: Machine, there: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.3)
    there.silence("worker-01")
    try:
        assert "timed out: no answer within 0.3 s" in refusal(machine)
    finally:
        there.speak("worker-01")


def test_something_that_speaks_no_ssh(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        words = refusal(replace(machine, host="127.0.0.1", port=port))
    assert f"timed out: port {port} did not speak SSH" in words


def test_sudo_that_asks_for_a_password(machine: Machine) -> None:
    way = Connection(replace(machine, user=machines.USER))
    with pytest.raises(ConnectError, match=r"sudo does not make alice root without a password .*NOPASSWD"):
        SshNode(way, "tests").prepare()
    way.close()


def test_arguments_arrive_as_they_are(node: SshNode) -> None:
    words = ["a b", "$HOME", "'", '"', "\n", "", "*", "~", "-n", ";", "ü"]
    said = node.run(["sh", "-c", 'printf "<%s>" "$@"', "sh", *words], env={"EXTRA": "x y"})
    assert said.stdout == "".join(f"<{word}>" for word in words)
    environment = node.run(["env"], env={"EXTRA": "x y"}).stdout
    assert "EXTRA=x y\n" in environment
    assert "SSH_" not in environment


def test_input_output_and_status(node: SshNode) -> None:
    text = "x" * 3_000_000  # more than a channel's window
    assert node.run(["cat"], stdin=text).stdout == text
    done = node.run(["sh", "-c", "echo out; echo err >&2; exit 3"], check=False)
    assert (done.status, done.stdout, done.stderr) == (3, "out\n", "err\n")
    with pytest.raises(CommandError, match="worker-01: false ended with 1: no message"):
        node.run(["false"])


def test_what_takes_too_long_is_ended_over_there(node: SshNode) -> None:
    with pytest.raises(CommandError, match=r"still running after 0.2 s"):
        node.run(["sleep", "77.5"], timeout=0.2)
    until(lambda: not running(node, "77.5"))


def test_more_commands_at_once_than_a_connection_may_have(node: SshNode) -> None:
    said = in_parallel(lambda number: node.run(["sh", "-c", f"sleep 0.1; echo {number}"]).stdout, range(12))
    assert said == [f"{number}\n" for number in range(12)]


def test_a_held_command_begins_when_it_is_released(node: SshNode, tmp_path: Path) -> None:
    process = start(node, held_back(["echo", "begun"]), tmp_path, held=True)
    until(lambda: (tmp_path / "err").read_text() == "\n")  # it is in its place
    assert process.wait(0.2) is None
    process.release()
    assert process.wait(PATIENCE) == 0
    assert (tmp_path / "out").read_text() == "begun\n"


def test_a_command_ends_with_its_caller(node: SshNode, tmp_path: Path) -> None:
    process = start(node, ["sleep", "78.5"], tmp_path)
    until(lambda: running(node, "78.5"))
    process.kill()
    until(lambda: not running(node, "78.5"))


@pytest.fixture
def beyond(node: SshNode) -> Remote:
    """A place to which a client on the machine leads, as its runtime's does to a container."""
    return Remote("beyond", node, ["env", "FAR=there"])


def test_a_command_beyond_a_machine(beyond: Remote, tmp_path: Path) -> None:
    process = start(beyond, ["sh", "-c", "echo $FAR; exit 7"], tmp_path)
    assert process.wait(PATIENCE) == 7
    assert (tmp_path / "out").read_text() == "there\n"


def test_a_held_command_beyond_a_machine(beyond: Remote, tmp_path: Path) -> None:
    process = start(beyond, held_back(["sh", "-c", "echo $FAR"]), tmp_path, held=True)
    until(lambda: (tmp_path / "err").read_text() == "\n")
    assert process.wait(0.2) is None
    process.release()
    assert process.wait(PATIENCE) == 0
    assert (tmp_path / "out").read_text() == "there\n"


def test_a_command_beyond_a_machine_ends_with_its_caller(beyond: Remote, tmp_path: Path) -> None:
    process = start(beyond, ["sleep", "82.5"], tmp_path)
    until(lambda: running(beyond, "82.5"))
    process.kill()
    until(lambda: not running(beyond, "82.5"))


def test_a_command_beyond_a_machine_ends_with_the_connection(
    beyond: Remote, there: Machines, tmp_path: Path
) -> None:
    process = start(beyond, ["sleep", "83.5"], tmp_path)
    until(lambda: running(beyond, "83.5"))
    there.cut("worker-01")
    assert process.wait(PATIENCE) == LOST
    until(lambda: not running(beyond, "83.5"))


def test_a_connection_that_is_cut(node: SshNode, there: Machines, tmp_path: Path) -> None:
    process = start(node, ["sleep", "79.5"], tmp_path)
    until(lambda: running(node, "79.5"))
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            node.run(["sleep", "80.5"])
        except CommandError as error:
            caught.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(lambda: running(there.nodes["worker-01"], "80.5"))
    there.cut("worker-01")
    waiting.join(PATIENCE)
    assert "worker-01: sleep 80.5 ended with no answer: the connection was lost" in str(caught[0])
    assert process.wait(PATIENCE) == LOST
    assert "worker-01: the connection was lost after" in (tmp_path / "err").read_text()
    # The next command makes a new connection; over there the old one's command has ended.
    until(lambda: not running(node, "79.5"))


@pytest.mark.long(one_in=0)
def test_a_machine_that_falls_silent(
    machine: Machine, there: Machines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(connection, "SILENCE_SECONDS", 0.6)
    monkeypatch.setattr(connection, "ALIVE_SECONDS", 0.2)
    node = SshNode(Connection(machine), "tests")
    process = start(node, ["sleep", "81.5"], tmp_path)
    assert process.wait(0.1) is None
    there.silence("worker-01")
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.3)
    try:
        assert process.wait(PATIENCE) == LOST
        with pytest.raises(CommandError, match=r"worker-01: true ended with no connection: .*timed out"):
            node.run(["true"])
    finally:
        there.speak("worker-01")
        there.cut("worker-01")


def test_files_go_by_sftp(node: SshNode, tmp_path: Path) -> None:
    (tmp_path / "tools" / "deep").mkdir(parents=True)
    (tmp_path / "tools" / "deep" / "file").write_bytes(bytes(range(256)) * 1000)
    (tmp_path / "tools" / "program").write_text("#!/bin/sh\necho there\n")
    (tmp_path / "tools" / "program").chmod(0o755)
    node.run(["mkdir", "-p", "/run/tests/incoming"])
    node.directory = "/run/tests"
    at = node.bring(tmp_path / "tools")
    assert node.run([f"{at}/program"]).stdout == "there\n"
    assert node.run(["wc", "-c", f"{at}/deep/file"]).stdout.split()[0] == "256000"


def start(node: Place, argv: list[str], directory: Path, held: bool = False) -> Process:
    return node.start(argv, stdout=directory / "out", stderr=directory / "err", held=held)


def running(node: Place, seconds: str) -> bool:
    return node.run(["pgrep", "-fx", f"sleep {seconds}"], check=False).status == 0
