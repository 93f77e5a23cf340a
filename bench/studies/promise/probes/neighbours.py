"""What neighbours do beside a promised flow: they come to a full link, go again, and send as they like.

And what happens to all of them alike: too much is promised, what runs on the node for them is restarted, and
who repairs the node asks it something.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.measurement.probe import READY_SECONDS, talking
from bench.studies.promise.probes import streams
from bench.studies.promise.records import Asked, Asking, Round, Step, Steps
from testbed.testbed import Testbed

PROGRAMS = Path(__file__).with_name("programs")
WARM_UP_S = 1.0
EVERY_S, TIMES, PATIENCE_S = 0.05, 60, 3.0  # between two questions, how many, and how long each is waited for
FULL_S = 0.5  # after which what fills the link has found its rate
LOOKED_AT_S = 1.5
BEFORE_S, AFTER_S = 2.0, 5.0
# What was saved up is used first: containerd's 2^32 - 1 bits last 8 s, where a pod of 400 Mbit/s sends with
# 1 Gbit/s. Between two flows less is saved up.
FIRST_S, ANEW_S = 10.0, 2.0
# SIOCETHTOOL with ETHTOOL_SGSO, _STSO and _GGSO of linux/ethtool.h; where the pod's image has no ethtool.
TURN_OFF = """
import array, fcntl, socket, struct, sys
asked = socket.socket()
def ask(command, value=0):
    said = array.array("B", struct.pack("II", command, value))
    fcntl.ioctl(asked, 0x8946, struct.pack("16sP16x", sys.argv[1].encode(), said.buffer_info()[0]))
    return struct.unpack("II", said)[1]
ask(0x1F)
ask(0x24)
sys.exit(ask(0x23))
"""


def arriving(testbed: Testbed, pod: str, label: str, others: Sequence[str], times: int) -> Iterator[Round]:
    """Let a pod come and send ``label`` beside ``others``, so many times, and go again.

    It is judged from the end of its ADD, where that is called from here. Where others call it, getting into
    a pod takes longer than what is measured: there it is judged from when its sender, which waits in its
    place, is let go. Raises RuntimeError.
    """
    for number in range(1, times + 1):
        with streams.sending(testbed, *others), streams.listening(testbed, label):
            streams.wait_until(time.monotonic() + FULL_S)
            with streams.counting(testbed, label) as counted:
                testbed.add(pod)
                added = time.monotonic()
                ours = pod in testbed.add_s
                with streams.sender(testbed, label, held=not ours) as sender:
                    since = added if ours else time.monotonic()
                    if not ours:
                        sender.release()
                    ended = streams.wait_until(since + LOOKED_AT_S)
        yield counted.round(f"ADD {number}", since, ended, added_s=added, faults=testbed.check())
        testbed.remove(pod)


def churn(testbed: Testbed, label: str, others: str, pods: Sequence[str], seconds: float) -> Round:
    """Let pods, which are there, go and come by turns for so long beside a promised flow.

    Raises RuntimeError.
    """
    changes = 0
    with streams.counting(testbed, label) as counted, streams.sending(testbed, label, others):
        begun = streams.wait_until(time.monotonic() + WARM_UP_S)
        while time.monotonic() < begun + seconds:
            pod = pods[changes % len(pods)]
            testbed.remove(pod)
            testbed.add(pod)
            changes += 1
        ended = time.monotonic()
    return counted.round(f"pods that went and came: {changes}", begun, ended, faults=testbed.check())


def without_offloads(testbed: Testbed, label: str, others: str, pods: Sequence[str], seconds: float) -> Round:
    """Turn segmentation offload off in pods, and measure a flow beside others for so long.

    Raises RuntimeError, also for a pod in which it stays on.
    """
    for pod in pods:
        place = testbed.networks[pod]
        place.run(["python3", "-IS", "-c", TURN_OFF, place.interface])
    with streams.counting(testbed, label) as counted, streams.sending(testbed, label, others):
        begun = time.monotonic() + WARM_UP_S
        ended = streams.wait_until(begun + seconds)
    return counted.round("without GSO", begun, ended)


def restart(testbed: Testbed, label: str) -> list[Round]:
    """Measure a flow before and after, and one that begins only then. Raises RuntimeError."""
    node = testbed.scenario.node_of(streams.flow(testbed.scenario, label).source)
    with streams.counting(testbed, label) as counted, streams.sending(testbed, label):
        begun = time.monotonic() + FIRST_S
        before = streams.wait_until(begun + BEFORE_S)
        agents = testbed.restart_agents(node)
        if not agents:
            raise RuntimeError(f"nothing runs on {node} that could be restarted")
        restarted = time.monotonic()
        after = streams.wait_until(restarted + AFTER_S)
    with streams.counting(testbed, label) as again, streams.sending(testbed, label):
        anew = time.monotonic() + ANEW_S
        ended = streams.wait_until(anew + AFTER_S)
    return [
        counted.round("before", begun, before),
        counted.round(f"after {', '.join(agents)}", restarted, after),
        again.round("a flow that begins then", anew, ended, faults=testbed.check()),
    ]


def room(testbed: Testbed, first: str, second: str) -> Steps:
    """Let a second pod come beside a first one, in its place, and the first beside the second.

    The link has room for either, and not for both. The first is there at the beginning. Raises RuntimeError
    for what is no answer of the network.
    """
    found = [_add(testbed, second)]
    faults = testbed.check()
    if found[-1].came:
        testbed.remove(second)
    testbed.remove(first)
    found.append(_add(testbed, second))
    found.append(_add(testbed, first))
    return Steps(steps=found, faults=[*faults, *testbed.check()])


def _add(testbed: Testbed, pod: str) -> Step:
    try:
        testbed.add(pod)
    except RuntimeError as error:
        return Step(pod=pod, came=False, words=str(error))
    return Step(pod=pod, came=True, words="")


def control(testbed: Testbed, node: str, other: str, *labels: str) -> Asked:
    """Ask a node by its first control port, as for repairs, and let it ask another, beside transfers.

    Nobody else may listen there, as on nodes that are namespaces. Raises RuntimeError.
    """
    nodes, addressing = testbed.nodes, testbed.addressing
    port = {name: addressing.control_ports(name)[0] for name in (node, other)}
    pairs = ((other, node), (node, other))
    timing = {"every": EVERY_S, "times": TIMES, "patience": PATIENCE_S}
    with ExitStack() as stack:
        wishes: list[tuple[str, dict[str, object]]] = [(to, {"port": port[to]}) for _, to in pairs]
        for at, to in pairs:
            asked = {"port": port[to], "address": str(addressing.address(to)), **timing}
            wishes.append((at, asked))
        talks = [stack.enter_context(talking(nodes[at], PROGRAMS / "asking.py", one)) for at, one in wishes]
        stack.enter_context(streams.sending(testbed, *labels))
        streams.wait_until(time.monotonic() + WARM_UP_S)
        asking = talks[len(pairs) :]
        for talk in asking:
            talk.begin()
        took = [talk.data(TIMES * EVERY_S + PATIENCE_S + READY_SECONDS) for talk in asking]
    return Asked(
        waited_s=PATIENCE_S,
        askings=[
            Asking(port=port[to], from_node=at, to_node=to, took_s=each)
            for (at, to), each in zip(pairs, took, strict=True)
        ],
    )
