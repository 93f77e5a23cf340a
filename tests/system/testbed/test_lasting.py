"""Testbeds that stay up, through the command line a user has."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.access.local import ENVIRONMENT
from testbed.providers.netns import passages
from testbed.providers.netns.sandbox import Sandbox
from tests import verbs
from tests.paths import ROOT
from tests.system.conftest import all_gone, pid_namespace
from tests.waiting import PATIENCE, until


@pytest.fixture
def name(tmp_path: Path) -> Iterator[str]:
    """A testbed's name that no other test uses; whatever is up under it is taken down."""
    chosen = "t" + str(abs(hash(tmp_path)))[:10]
    yield chosen
    if box := Sandbox.find(chosen):
        box.stop()


@pytest.mark.usefixtures("untouched_host")
def test_from_up_to_down(name: str, tmp_path: Path) -> None:
    up = verbs.run("up", "--name", name, "--scenario", "kubernetes")
    assert up.returncode == 0, up.stderr
    assert "172.16.1.2" in up.stdout
    again = verbs.run("up", "--name", name)
    assert again.returncode == 2
    assert f"testbed '{name}' is up already" in again.stderr

    ran = verbs.run("exec", "A-1", "--name", name, "--", "sh", "-c", "ip -br address show eth0; exit 7")
    assert ran.returncode == 7
    assert "172.16.1.2/24" in ran.stdout
    on_node = verbs.run("exec", "worker-02", "--name", name, "--", "cat", "/run/flannel/subnet-a.env")
    assert "FLANNEL_SUBNET=172.16.2.1/24" in on_node.stdout
    drawn = tmp_path / "drawn.svg"
    shown = verbs.run("status", "--name", name, "--draw", str(drawn))
    assert "A-1  cluster a  172.16.1.2" in shown.stdout, shown.stderr
    assert "172.16.1.2" in "".join(ET.parse(drawn).getroot().itertext())

    between = verbs.run("iperf", "A-1", "A-2", "--name", name, "--duration", "2", "--json")
    told = json.loads(between.stdout)
    # Whatever the verdict is: other tests have the processors too.
    assert between.returncode == {"held": 0, "violated": 1, "invalid": 3}[told["verdict"]], between.stderr
    assert told["flow"]["name"] == "A-1 -> A-2"
    assert told["flow"]["guarantee_bps"] == 1_000_000_000
    assert told["flow"]["phases"]["quiet"]["samples"] > 0
    back = verbs.run("iperf", "A-3", "A-1", "--name", name, "--duration", "1")
    assert back.returncode == 0, back.stderr
    assert "A-3 has no promise to judge" in back.stdout
    for ends, words in (
        (("A-1", "A-9"), "has no pod 'A-9' (pods: A-1, A-2, A-3, A-4)"),
        (("A-1", "A-1"), "two pods"),
    ):
        refused = verbs.run("iperf", *ends, "--name", name)
        assert (refused.returncode, words in refused.stderr) == (2, True), refused.stderr
    line = verbs.run("ssh", "worker-02", "--name", name, "tc -s qdisc show dev eth0 | wc -l; exit 3")
    assert (line.returncode, line.stdout.strip().isdecimal()) == (3, True), line.stderr
    no_program = verbs.run("exec", "worker-02", "--name", name, "tc -s class")
    assert no_program.returncode != 0
    nowhere = verbs.run("exec", "A-9", "--name", name, "--", "true")
    assert nowhere.returncode == 2
    assert "has no 'A-9': A-1, A-2" in nowhere.stderr
    assert "no command" in verbs.run("exec", "A-1", "--name", name).stderr

    box = Sandbox.find(name)
    assert box is not None
    namespace = pid_namespace(box.pid)
    assert verbs.run("down", "--name", name).returncode == 0
    assert all_gone(namespace)
    assert Sandbox.find(name) is None
    gone = verbs.run("down", "--name", name)
    assert gone.returncode == 2
    assert f"no testbed '{name}' is up" in gone.stderr


@pytest.mark.long(one_in=0)
def test_two_side_by_side(name: str) -> None:
    other = name + "b"
    try:
        for each in (name, other):
            assert (
                verbs.run("up", "--name", each, "--scenario", "kubernetes", "--scale", "0.1").returncode == 0
            )
        listed = verbs.run("status").stdout
        assert name in listed
        assert other in listed
        assert verbs.run("down", "--name", name).returncode == 0
        assert verbs.run("exec", "A-1", "--name", other, "--", "true").returncode == 0
    finally:
        if box := Sandbox.find(other):
            box.stop()


def test_capture_shows_the_packets_of_a_pod(name: str) -> None:
    assert verbs.run("up", "--name", name, "--scenario", "kubernetes").returncode == 0
    if shutil.which("tcpdump", path=ENVIRONMENT["PATH"]) is None:
        refused = verbs.run("capture", "A-1", "--name", name)
        assert refused.returncode == 2
        assert "tcpdump is not installed: apt-get install tcpdump" in refused.stderr
        return
    capture = subprocess.Popen(
        [sys.executable, "tasks.py", "capture", "A-1", "--name", name, "--", "-c", "1", "udp port 9"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    # Packets go on until one is seen: when exactly a capture begins is nothing it tells.
    send = "import socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
    send += "while True: s.sendto(b'x',('172.16.2.2',9)); time.sleep(0.05)"
    sender = subprocess.Popen(
        [sys.executable, "tasks.py", "exec", "A-1", "--name", name, "--", "python3", "-c", send], cwd=ROOT
    )
    shown, _ = capture.communicate(timeout=PATIENCE)
    assert verbs.run("down", "--name", name).returncode == 0
    sender.wait(PATIENCE)
    assert "172.16.1.2" in shown
    assert "> 172.16.2.2.9: UDP, length 1" in shown


def test_an_ordinary_user_s_capture_is_a_pcap_file(tmp_path: Path) -> None:
    """The reader that stands in for tcpdump where tcpdump cannot run, tried on loopback."""
    box = Sandbox.start("packets.test")
    try:
        box.switch.run(["ip", "link", "set", "lo", "up"])
        out = tmp_path / "out.pcap"
        reader = [sys.executable, "-I", "-S", passages.__file__, "packets", "lo"]
        process = box.switch.start(reader, stdout=out, stderr=tmp_path / "err")
        send = "import socket,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
        send += "s.sendto(b'needle',('127.0.0.1',9))"

        def seen() -> bool:
            box.switch.run(["python3", "-c", send])
            return b"needle" in out.read_bytes()

        until(seen)
        process.kill()
    finally:
        box.stop()
    content = out.read_bytes()
    assert content[:4] == (0xA1B2C3D4).to_bytes(4, sys.byteorder)
    captured, original = struct.unpack_from("=II", content, 24 + 8)
    assert captured == original
    assert len(content) >= 24 + 16 + captured
    assert b"needle" in content


@pytest.mark.parametrize("wrong", ["", "a b", "-x", "../x", "x" * 40])
def test_a_name_that_is_none(wrong: str) -> None:
    done = verbs.run("up", f"--name={wrong}")
    assert done.returncode == 2
    assert "is not a valid name" in done.stderr
