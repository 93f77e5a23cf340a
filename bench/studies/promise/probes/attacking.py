"""A hostile pod beside a promised flow on a full link: it sends frames as fast as it can, and nothing else.

The promise is one of the link, not of a processor. So the attacker runs with nice 10: on a machine with few
processors the promised flow's own programs would else wait for it, and that would be measured.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Network
from itertools import islice
from pathlib import Path

from bench.measurement.probe import READY_SECONDS, started
from bench.studies.promise.attacks import CONTAINED, MANY_HOPS, Attack, Scene, Tunnel
from bench.studies.promise.frames import End, Frame
from bench.studies.promise.probes import streams
from bench.studies.promise.probes.programs import inject as program
from bench.studies.promise.records import Round
from testbed.access.place import PodPlace
from testbed.overlays.backends.vxlan import Overlay
from testbed.testbed import Testbed

WARM_UP_S, SECONDS = 0.5, 2.0  # the time in which an attack begins is not judged
MORE_S = 0.2  # for which it goes on, so that all of the time that is judged is under attack
FIRST, FEW = 4, 250  # of a subnet of 256 those that are no gateway's, as a rule
NO_OFFLOAD = bytes(10).hex()  # a virtio_net_hdr that asks for nothing
GATEWAY = """
import json, socket, subprocess, time
def shown(*words):
    return json.loads(subprocess.run(["ip", "-j", "-4", *words], capture_output=True).stdout or "[]")
route, = shown("route", "show", "default")
asked = socket.socket(type=socket.SOCK_DGRAM)
for _ in range(100):
    asked.sendto(b"", (route["gateway"], 9))
    known = [one["lladdr"] for one in shown("neigh", "show", route["gateway"]) if "lladdr" in one]
    if known:
        print(json.dumps([known[0], route["gateway"]]))
        break
    time.sleep(0.01)
"""
# What is sent is too long for a command line.
KEEP = 'file=$(mktemp) && cat >"$file" && echo "$file"'


def scene(testbed: Testbed, attacker: str, neighbour: str, remote: str) -> Scene:
    """Return whom an attacker may claim to be, and send to, on a testbed that is up. Raises RuntimeError."""
    networks, addressing = testbed.networks, testbed.addressing
    said = networks[attacker].run(["python3", "-IS", "-c", GATEWAY]).stdout
    if not said.strip():
        raise RuntimeError(f"{attacker}: its gateway does not answer")
    gateway: End = tuple(json.loads(said))
    here, there = (testbed.scenario.node_of(pod) for pod in (attacker, remote))
    cluster = testbed.scenario.pods[attacker].cluster
    hosts = addressing.nodes[here].network
    return Scene(
        own=_end(networks[attacker]),
        neighbour=_end(networks[neighbour]),
        gateway=gateway,
        remote=networks[remote].address,
        nobody_here=_nobody(testbed, addressing.pod_subnet(cluster, here)),
        nobody_beyond=[
            *_nobody(testbed, addressing.pod_subnet(cluster, there)),
            *_nobody(testbed, hosts),
        ],
        on_link=_nobody(testbed, hosts, MANY_HOPS),
        tunnel=_tunnel(testbed, cluster, here, there),
        node_beyond=str(addressing.address(there)),
    )


def rounds(
    testbed: Testbed, attacks: Sequence[Attack], attacker: str, seen: Scene, label: str, others: str
) -> Iterator[Round]:
    """Try one attack after another beside a promised flow. Raises RuntimeError."""
    for attack in attacks:
        with (
            streams.counting(testbed, label, [attacker]) as counted,
            streams.sending(testbed, label, others),
            flooding(testbed.networks[attacker], attack.frames(seen), attack.options) as sent,
        ):
            begun = time.monotonic() + WARM_UP_S
            ended = streams.wait_until(begun + SECONDS)
        yield counted.round(attack.name, begun, ended, sent=sent.pop(), faults=testbed.check())


@contextmanager
def flooding(attacker: PodPlace, frames: Sequence[Frame], options: Mapping[str, int]) -> Iterator[list[int]]:
    """Let frames be sent from the beginning of the block; after it the list holds how many were.

    They are sent for as long as a round takes, and not until they are told to end: what leads to a place may
    end a command, but not tell it to. Raises RuntimeError.
    """
    told = [[NO_OFFLOAD, frame.hex()] for frame in frames]
    seconds = WARM_UP_S + SECONDS + MORE_S
    spec = {"frames": told, "held": True, "for_ever": True, "seconds": seconds, **options}
    file = attacker.run(["sh", "-c", KEEP], stdin=json.dumps(spec)).stdout.strip()
    text = Path(program.__file__).read_text(encoding="utf-8")
    argv = ["nice", "-n", "10", *CONTAINED, "python3", "-IS", "-c", text, file]
    sent: list[int] = []
    try:
        with started(attacker, argv, f"{attacker.name}: what attacks") as attack:
            attack.begin()
            attack.expect("flooding", READY_SECONDS)
            yield sent
            sent.append(int(attack.data(READY_SECONDS)["sent"]))
    finally:
        attacker.run(["rm", "-f", file])


def _end(pod: PodPlace) -> End:
    """Return a pod's hardware address and its IPv4 address."""
    (link,) = pod.run(["ip", "-j", "link", "show", pod.interface]).json()
    return link["address"], pod.address


def _nobody(testbed: Testbed, network: IPv4Network, most: int = FEW) -> list[str]:
    """Return so many addresses of a network that nobody on the testbed has, or all."""
    taken = {pod.address for pod in testbed.pods.values()}
    taken |= {str(testbed.addressing.address(node)) for node in testbed.scenario.nodes}
    there = (str(network.network_address + number) for number in range(FIRST, network.num_addresses - 2))
    return list(islice((address for address in there if address not in taken), most))


def _tunnel(testbed: Testbed, cluster: str, here: str, there: str) -> Tunnel | None:
    """Return the VTEPs of two nodes, where the testbed has made them."""
    addressing = testbed.addressing
    made_by_others = testbed.orchestrator is not None and testbed.orchestrator.overlay
    if made_by_others or testbed.scenario.clusters[cluster].backend != "vxlan":
        return None
    overlay, flannel = Overlay(addressing, cluster), testbed.scenario.clusters[cluster].flannel
    near, far = ((overlay.mac(node), str(addressing.address(node))) for node in (here, there))
    return Tunnel(flannel.port, flannel.vni, near, far)
