"""How a testbed is put together of its parts, with nodes that only note what they are asked to run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from ipaddress import IPv4Address

import pytest

from testbed.access.batch import STEPS_SCRIPT
from testbed.access.place import InNamespace, Node, Place, Result
from testbed.enforcements.enforcement import Enforcement
from testbed.orchestrators import Orchestrator
from testbed.providers import Provider
from testbed.scenario.addressing import Addressing, Found
from testbed.testbed import ENTRIES, Testbed
from tests.doubles import Asked, RecordingNode, in_batch, silently
from tests.unit.testbed.builders import addressed

NAMES = ["master-01", "master-02", "worker-01", "worker-02"]
MACHINES = Found(
    addresses={name: IPv4Address(f"192.168.56.{host}") for host, name in enumerate(NAMES, start=101)},
    uplinks=dict.fromkeys(NAMES, "ens5"),
)


class Bare(RecordingNode):
    """A node that has nothing."""

    def answer(self, asked: Asked) -> Result:
        return in_batch(asked, silently)


class Machines(Provider):
    """Nodes that note what they are asked to run."""

    def __init__(self, addressing: Addressing, found: Found) -> None:
        self.recording = {name: Bare(name) for name in addressing.nodes}
        self.nodes: dict[str, Node] = {}
        self._found = found
        self.settled: list[str] | None = None

    def up(self) -> Found:
        self.nodes = {**self.recording}
        return self._found

    def settle(self, networks: Sequence[Place]) -> None:
        self.settled = [network.name for network in networks]

    def down(self) -> None:
        self.nodes = {}


class NoPods(Orchestrator):
    """It notes what it was made with."""

    def __init__(
        self, overlay: str | None = None, found: Found | None = None, error: str | None = None
    ) -> None:
        self.overlay = overlay
        self._found = found or Found()
        self._error = error
        self.given: tuple[Addressing, Enforcement] | None = None
        self.is_down = False

    def __call__(self, addressing: Addressing, enforcement: Enforcement, provider: Provider) -> NoPods:
        self.given = addressing, enforcement
        return self

    def up(self, progress: Callable[[str], None], without: Collection[str] = ()) -> Found:
        if self._error:
            raise RuntimeError(self._error)
        return self._found

    def add(self, name: str) -> None:
        raise RuntimeError(f"no room for {name}")

    def remove(self, name: str) -> None:
        raise RuntimeError(f"no {name}")

    def check(self) -> list[str]:
        return ["a pod is gone"]

    def down(self) -> None:
        self.is_down = True


def steps(provider: Machines, node: str) -> list[tuple[list[str], str]]:
    """Return the commands that a node was asked to run in steps, and the input of each."""
    found = []
    for asked in provider.recording[node].asked:
        if STEPS_SCRIPT not in asked.argv:
            continue
        words, text = asked.argv[asked.argv.index(STEPS_SCRIPT) + 2 :], asked.stdin
        while words:
            size, count = int(words[0]), int(words[1])
            found.append((words[2 : 2 + count], text[:size]))
            words, text = words[2 + count :], text[size:]
    return found


def batches(provider: Machines, node: str, program: str) -> str:
    """Return what a program was given to do on a node."""
    return "".join(text for argv, text in steps(provider, node) if argv == [program, "-batch", "-"])


def test_what_machines_have_is_known_to_all_parts_and_the_scenario_stays(contmec: Addressing) -> None:
    provider, pods = Machines(contmec, MACHINES), NoPods()
    testbed = Testbed(contmec, provider, pods)
    testbed.up()
    assert testbed.scenario == contmec.scenario
    assert testbed.found == MACHINES
    assert pods.given == (testbed.addressing, testbed.enforcement)
    assert testbed.addressing.uplink("worker-01") == "ens5"
    assert "dev ens5 local 192.168.56.103 " in batches(provider, "worker-01", "ip")


def test_what_the_clusters_have_is_known_once_the_pods_are_up(contmec: Addressing) -> None:
    testbed = Testbed(contmec, Machines(contmec, MACHINES), NoPods(found=Found(mtu=9000)))
    testbed.up()
    assert testbed.addressing.pod_mtu("a") == 8950
    assert testbed.addressing.uplink("worker-01") == "ens5"
    assert testbed.scenario.underlay.mtu == 1500


def test_nodes_that_the_testbed_makes_have_nothing_to_be_found(contmec: Addressing) -> None:
    testbed = Testbed(contmec, Machines(contmec, Found()), NoPods())
    testbed.up()
    assert testbed.found == Found()
    assert testbed.addressing is contmec


def test_each_node_gets_the_entries_of_its_clusters(contmec: Addressing) -> None:
    provider = Machines(contmec, Found())
    testbed = Testbed(contmec, provider, NoPods())
    testbed.up()
    assert testbed.overlay == ENTRIES
    links = {name: batches(provider, name, "ip") for name in ("master-01", "worker-01")}
    assert ("flannel.1" in links["master-01"], "flannel.2" in links["master-01"]) == (True, False)
    assert "link add flannel.1" in links["worker-01"]
    assert "link add flannel.2" in links["worker-01"]
    assert "fdb add " in batches(provider, "worker-01", "bridge")
    written = {argv[1]: text for argv, text in steps(provider, "worker-01") if argv[0] == "tee"}
    assert "FLANNEL_SUBNET=172.16.1.1/24" in written["/run/flannel/subnet-a.env"]
    assert written["/proc/sys/net/ipv4/ip_forward"] == "1\n"


def test_where_others_make_the_entries_the_testbed_makes_none(contmec: Addressing) -> None:
    provider = Machines(contmec, Found())
    testbed = Testbed(contmec, provider, NoPods(overlay="flannel's own"))
    testbed.up()
    assert testbed.overlay == "flannel's own"
    assert "flannel" not in batches(provider, "worker-01", "ip")
    assert "netns add container-1" in batches(provider, "worker-01", "ip")  # containers are beside that


def test_pods_that_do_not_start_take_the_nodes_down_with_them(contmec: Addressing) -> None:
    provider = Machines(contmec, Found())
    testbed = Testbed(contmec, provider, NoPods(error="pod A-1: no room"))
    with pytest.raises(RuntimeError, match="pod A-1: no room"):
        testbed.up()
    assert provider.nodes == {}
    assert testbed.check() == ["the testbed is not up"]


def test_a_testbed_is_taken_down_with_its_pods_first(contmec: Addressing) -> None:
    provider, pods = Machines(contmec, Found()), NoPods()
    testbed = Testbed(contmec, provider, pods)
    testbed.up()
    testbed.down()
    assert pods.is_down
    assert testbed.nodes == {}


def test_a_check_tells_what_networks_lack_and_then_what_is_wrong_with_pods(contmec: Addressing) -> None:
    testbed = Testbed(contmec, Machines(contmec, Found()), NoPods())
    testbed.up()
    *lacking, pods = testbed.check()
    assert "the network of cluster a lacks, on worker-01: flannel.1 up" in lacking
    assert "the network of cluster b lacks, on worker-02: FLANNEL_MTU=1450" in lacking
    assert pods == "a pod is gone"


def test_what_others_join_is_not_the_testbeds_to_check(contmec: Addressing) -> None:
    testbed = Testbed(contmec, Machines(contmec, Found()), NoPods(overlay="flannel's own"))
    testbed.up()
    assert testbed.check() == ["a pod is gone"]


def test_containers_are_reached_at_their_own_node_or_by_its_address(contmec: Addressing) -> None:
    testbed: Testbed = Testbed(contmec, Machines(contmec, Found()), NoPods())
    testbed.up()
    noise = contmec.scenario.disturbances[0]
    assert testbed.address_for(noise) == "192.168.56.14"
    near = noise.model_copy(update={"source": "container-2"})
    assert testbed.address_for(near) == "172.18.0.2"


@pytest.mark.parametrize(
    ("rated", "settled"), [(["underlay.rate=9G"], ["A-1", "container-1", "container-2"]), ([], None)]
)
def test_networks_are_settled_where_links_have_a_rate(rated: list[str], settled: list[str] | None) -> None:
    addressing = addressed("contmec", *rated)
    provider, pods = Machines(addressing, Found()), NoPods()
    node = provider.recording["worker-01"]
    pods.networks = {"A-1": InNamespace("A-1", node, "/run/netns/A-1", "172.16.1.2", "veth1")}
    Testbed(addressing, provider, pods).up()
    assert provider.settled == settled
