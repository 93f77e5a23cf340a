"""A promise holds whatever a neighbour sends as fast as it can, with nothing but CAP_NET_RAW.

The promise is one of the link, not of a processor. So the attacker runs with nice 10: on a machine with two
processors the victim's own programs would else wait for it, and that would be measured.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import fmean
from typing import IO

import pytest

from bench.studies.promise.attacks import ATTACKS, Attack
from tests import cases
from tests.system.plugin.ask import ASK
from tests.system.plugin.conftest import Node
from tests.system.plugin.floods import SCENE, UNDERLAY
from tests.system.plugin.judge import ATTACKER, attacking
from tests.system.plugin.overlapped import Overlapped
from tests.system.plugin.uplinks import HOST

ROUNDS = 3
SECONDS = 2  # that are judged at first; the one in which the attack begins is not
PROMISE, LINK = 40e6, "100M"
PAYLOAD, FRAME = 1398, 1464  # of a full TCP segment with timestamps at MTU 1450
LEAST = 0.95 * PROMISE * PAYLOAD / FRAME
FEWEST = 1000  # frames a second; a machine that is busy with other things makes few


pytestmark = [
    pytest.mark.alone,
    pytest.mark.long(one_in=ROUNDS * len(ATTACKS)),
    pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed"),
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_promise_holds_under_attack_on_a_full_link(node: Node, attack: Attack, round_: int) -> None:
    pair = Overlapped(node, capacity=LINK)
    pair.attach("A-1", f"{PROMISE:.0f}")
    pair.attach(ATTACKER)
    pair.plug_in()
    node.run("ip", "addr", "add", f"{UNDERLAY}0.1/16", "dev", "eth0")

    def judge(factor: int) -> None:
        found, sent = under(attack, pair, SECONDS * factor)
        assert sent > FEWEST * len(found)
        assert fmean(found) >= LEAST, found

    cases.with_more_samples(judge)


@pytest.mark.parametrize("rate", [20e6, 60e6])
def test_a_promise_holds_when_somebody_elsewhere_asks_its_pods_kernel(node: Node, rate: float) -> None:
    """The pod's kernel answers each of them; what is too much is best effort."""
    pair = Overlapped(node, capacity=LINK)
    pair.attach("A-1", f"{PROMISE:.0f}")
    pair.plug_in()
    asked = {"to": SCENE.neighbour[1], "kind": "echo", "size": 1380, "count": 10**9, "rate": rate / 8 / 1380}
    ask = pair.node.argv("nsenter", "--net=/run/netns/two", "nice", "-n", "10", *ASK)

    def judge(factor: int) -> None:
        with everybody_else(pair), victim(pair) as seconds:
            next(seconds)
            with subprocess.Popen([*ask, json.dumps(asked)]) as asking:
                next(seconds)
                found = [next(seconds) for _ in range(SECONDS * factor)]
                assert asking.poll() is None
                asking.kill()
        assert fmean(found) >= LEAST, found

    cases.with_more_samples(judge)


def under(attack: Attack, pair: Overlapped, count: int) -> tuple[list[float], int]:
    """What the victim's receiver gets in each second (bits per second), and how many frames were sent."""
    with everybody_else(pair), victim(pair) as seconds:
        next(seconds)  # it gets through
        with flood(pair, attack) as attacker:
            next(seconds)
            found = [next(seconds) for _ in range(count)]
    return found, attacker.pop()


@contextmanager
def everybody_else(pair: Overlapped) -> Iterator[None]:
    """Let the node want all of the link."""
    send = ["iperf3", "--client", HOST["two"], "--port", "5202", "--time", "60", "--parallel", "4"]
    with serving(pair, "two", "--port", "5202"), pair.node.running(*send):
        yield


@contextmanager
def serving(pair: Overlapped, namespace: str, *options: str) -> Iterator[IO[str]]:
    """Have iperf3 listen; lend what it says from then on."""
    serve = ["iperf3", "--server", "--one-off", "--forceflush", "--format", "k", *options]
    with pair.node.running("nsenter", f"--net=/run/netns/{namespace}", *serve) as server:
        assert server.stdout is not None
        while "Server listening" not in (line := server.stdout.readline()):
            assert line, "it has ended"
        yield server.stdout


@contextmanager
def victim(pair: Overlapped) -> Iterator[Iterator[float]]:
    """Let A-1 send to a pod on the other node; what gets there, bits per second, second after second."""
    send = ["nsenter", "--net=/run/netns/A-1", "iperf3", "--client", SCENE.remote, "--time", "60"]
    with serving(pair, "A-3") as told, pair.node.running(*send):
        yield each_second(told)


def each_second(told: IO[str]) -> Iterator[float]:
    """What a server that iperf3 is says of each second, bits per second."""
    return (rate(line) for line in told if line.rstrip().endswith("Kbits/sec"))


def rate(line: str) -> float:
    """Bits per second of a line of iperf3's."""
    return float(line.split()[-2]) * 1000


@contextmanager
def flood(pair: Overlapped, attack: Attack) -> Iterator[list[int]]:
    """Have the attacker send; afterwards the list holds how many frames it sent."""
    argv = pair.node.argv("nice", "-n", "10", *attacking())
    frames = [[bytes(10).hex(), frame.hex()] for frame in attack.frames(SCENE)]
    spec = json.dumps({"frames": frames, "for_ever": True, **attack.options})
    sent: list[int] = []
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdin is not None
        assert sender.stdout is not None
        print(spec, file=sender.stdin, flush=True)
        assert sender.stdout.readline() == "flooding\n"
        yield sent
        sender.stdin.close()
        sent.append(json.loads(sender.stdout.readline())["sent"])
