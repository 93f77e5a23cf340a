"""A node's agent: what was taken from the kernel comes back, it is told, and there is one agent a node."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests import cases
from tests.certificates import openssl_makes
from tests.installation import build
from tests.system.plugin.conftest import Document, Node, child_of, end
from tests.system.plugin.test_installation import ask, listed
from tests.system.plugin.uplinks import HOST, Pair, gained, on_uplink
from tests.waiting import PATIENCE, until

AT = "127.0.0.1:9725"
# A scraper: what `curl` would do, which need not be here.
SCRAPE = (
    "import sys, urllib.request as r;"
    "asked = r.Request(sys.argv[1], headers={'Accept': 'application/openmetrics-text'});"
    "sys.stdout.write(r.urlopen(asked, timeout=30).read().decode())"
)


class Agent:
    """One at work, and what it says."""

    def __init__(self, node: Node, process: subprocess.Popen[str], log: Path) -> None:
        self.node = node
        self.process = process
        self.log = log

    @property
    def pid(self) -> int:
        """Its number here, where nsenter has it as a child."""
        return child_of(self.process.pid)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()

    def says(self, text: str) -> None:
        until(lambda: text in self.log.read_text(), self.log.read_text)


@contextmanager
def agent(
    node: Node,
    log: Path,
    network: Document,
    *options: str,
    plugin: Path | None = None,
    env: Sequence[str] = (),
) -> Iterator[Agent]:
    command = "env", *env, str(plugin or node.plugin), "agent", "--listen", AT, *options
    argv = node.argv("setpriv", "--pdeathsig=KILL", *command)
    with (
        log.open("w") as out,
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, text=True) as process,
    ):
        assert process.stdin is not None
        process.stdin.write(listed(network))
        process.stdin.close()
        try:
            yield Agent(node, process, log)
        finally:
            end(process)


@pytest.fixture
def agents(node: Node, tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    """Start one for a network; all end with the test."""
    with ExitStack() as stack:
        count = iter(range(100))

        def start(network: Document, *options: str, **others: Any) -> Agent:
            log = tmp_path / f"agent-{next(count)}"
            return stack.enter_context(agent(node, log, network, *options, **others))

        yield start


def scraped(node: Node, at: str = AT) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Every sample that a scraper is given, by its name."""
    text = node.run("/usr/bin/python3", "-c", SCRAPE, f"http://{at}/metrics")
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def value(node: Node, name: str) -> float:
    """Of a metric with one sample; -1 where there is none yet."""
    samples = scraped(node).get(name, [({}, -1)])
    ((_, number),) = samples
    return number


@pytest.fixture
def pair(node: Node) -> Pair:
    """A pod of each of two clusters, each with a guarantee, on one link."""
    made = Pair(node)
    made.bring_up({"A-1": on_uplink("100M"), "B-1": on_uplink("50M", cluster="b")})
    return made


def ruleset(node: Node) -> str:
    """Without what is counted."""
    return node.run("nft", "--stateless", "list", "ruleset")


def looked(node: Node) -> bool:
    return value(node, "concorde_last_compare_timestamp_seconds") > 0


def test_what_was_flushed_comes_back_and_is_told(pair: Pair, agents: Callable[..., Agent]) -> None:
    node, before = pair.node, ruleset(pair.node)
    one = agents(on_uplink(), "--every", "3600")
    one.says("serves /metrics")
    until(lambda: looked(node))
    assert (value(node, "concorde_differences"), value(node, "concorde_repairs_total")) == (0, 0)
    node.run("nft", "flush", "ruleset")
    until(lambda: value(node, "concorde_repairs_total") > 0, one.log.read_text)
    assert value(node, "concorde_differences") == value(node, "concorde_repairs_total")
    one.says("repaired: nftables: table ip concorde is missing")
    assert sorted(ruleset(node).splitlines()) == sorted(before.splitlines())
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"


def test_what_no_event_tells_of_is_found_by_the_next_look(pair: Pair, agents: Callable[..., Agent]) -> None:
    node = pair.node
    agents(on_uplink(), "--every", "1").says("serves /metrics")
    node.run("tc", "qdisc", "delete", "dev", "eth0", "root")
    until(lambda: value(node, "concorde_repairs_total") > 0)
    until(lambda: value(node, "concorde_differences") == 0)
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"


@pytest.mark.long(one_in=0)
def test_what_cannot_be_repaired_stays_a_difference_and_is_said_once(
    pair: Pair, agents: Callable[..., Agent]
) -> None:
    node = pair.node
    node.run("tc", "qdisc", "replace", "dev", "eth0", "root", "handle", "7:", "pfifo")
    one = agents(on_uplink(), "--every", "1")
    one.says("agent: somebody else configured eth0: its root qdisc is pfifo 7:")
    until(lambda: value(node, "concorde_differences") == 1)
    begun = value(node, "concorde_last_compare_timestamp_seconds")
    until(lambda: value(node, "concorde_last_compare_timestamp_seconds") > begun + 1)
    assert value(node, "concorde_repairs_total") == 0
    assert one.log.read_text().count("somebody else") == 1


@pytest.mark.long(one_in=0)
def test_changes_that_are_none_of_ours_bring_no_look(pair: Pair, agents: Callable[..., Agent]) -> None:
    node = pair.node
    agents(on_uplink(), "--every", "3600").says("serves /metrics")
    until(lambda: looked(node))
    begun = value(node, "concorde_last_compare_timestamp_seconds")
    for number in range(20):
        node.run("nft", "add", "table", "ip", f"other-{number}".replace("-", "_"))
        node.run("nft", "delete", "table", "ip", f"other_{number}")
    node.run("nft", "delete", "table", "ip6", "concorde")
    until(lambda: value(node, "concorde_repairs_total") > 0)
    assert value(node, "concorde_last_compare_timestamp_seconds") >= begun
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"


def test_the_other_clusters_waits_and_takes_its_place(pair: Pair, agents: Callable[..., Agent]) -> None:
    node = pair.node
    first = agents(on_uplink())
    first.says("serves /metrics")
    second = agents(on_uplink(cluster="b"))
    second.says("another looks after this node")
    assert "serves" not in second.log.read_text()
    first.kill()
    second.says("serves /metrics")
    until(lambda: looked(node))
    node.run("nft", "flush", "ruleset")
    until(lambda: value(node, "concorde_repairs_total") > 0)


def test_removing_one_cluster_leaves_the_others_promises_guard_and_metrics(
    pair: Pair, agents: Callable[..., Agent]
) -> None:
    node = pair.node
    first, second = agents(on_uplink()), None
    first.says("serves /metrics")
    second = agents(on_uplink(cluster="b"))
    second.says("another looks after this node")
    assert node.call("DEL", "A-1", on_uplink()) == {}
    os.kill(first.pid, signal.SIGTERM)  # as the DaemonSet's pod, whose agent ends before anything is removed
    first.process.wait()
    assert ask(node, "dismantle", listed(on_uplink()))[0] == 0
    second.says("serves /metrics")
    until(lambda: looked(node))
    found = scraped(node)
    assert [labels["network"] for labels, _ in found["concorde_guarantee_bits_per_second"]] == ["cluster-b"]
    assert found["concorde_class_sent_bytes_total"]
    assert value(node, "concorde_differences") == 0
    node.run("nft", "flush", "ruleset")
    until(lambda: value(node, "concorde_repairs_total") > 0)
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"


@pytest.mark.long(one_in=0)
def test_a_node_that_is_dismantled_under_it_has_an_agent_still(
    node: Node, agents: Callable[..., Agent]
) -> None:
    one = agents(on_uplink())
    one.says("serves /metrics")
    assert ask(node, "dismantle", listed(on_uplink()))[0] == 0
    until(lambda: one.log.read_text().count("looks after this node") == 2)
    other = agents(on_uplink(cluster="b"))
    other.says("another looks after this node")
    until(lambda: "concorde_build_info" in scraped(node))


def open_connections(node: Node, count: int, sends: bytes, times: int) -> subprocess.Popen[str]:
    """A program of the node's that keeps so many connections open, having sent something by each."""
    code = (
        "import socket, sys\n"
        f"made = [socket.create_connection(('127.0.0.1', 9725), 10) for _ in range({count})]\n"
        f"for one in made: one.sendall({sends!r} * {times})\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
    )
    pipe = subprocess.PIPE
    argv = node.argv("/usr/bin/python3", "-c", code)
    process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


@pytest.mark.long(one_in=3)
@pytest.mark.parametrize(("sends", "times"), [(b"GET /metr", 1), (b"\x00\xff", 20_000), (b"", 1)])
def test_slow_clients_and_garbage_hold_nothing_up(
    pair: Pair, agents: Callable[..., Agent], sends: bytes, times: int
) -> None:
    node = pair.node
    one = agents(on_uplink(), "--every", "3600")
    one.says("serves /metrics")
    until(lambda: looked(node))
    with open_connections(node, 6, sends, times) as slow:
        node.run("nft", "flush", "ruleset")
        one.says("repaired: nftables: table ip concorde is missing")
        assert value(node, "concorde_repairs_total") > 0
        assert slow.stdin is not None
        slow.stdin.close()
    assert one.process.poll() is None


def open_files(one: Agent) -> int:
    return len(list(Path(f"/proc/{one.pid}/fd").iterdir()))


@pytest.mark.long(one_in=0)
def test_it_keeps_nothing_of_its_scrapes(pair: Pair, agents: Callable[..., Agent]) -> None:
    node = pair.node
    one = agents(on_uplink(), "--every", "1")
    one.says("serves /metrics")
    until(lambda: looked(node))
    before = open_files(one)
    for _ in range(10):
        scraped(node)
    until(lambda: open_files(one) <= before + 2)  # a look's, and a scrape's that has just ended
    states = [Path(f"/proc/{pid}/stat").read_text().split()[2] for pid in children(one)]
    assert len(states) <= 2


def children(one: Agent) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{one.pid}/task/{one.pid}/children").read_text().split()]


@pytest.mark.long(one_in=0)
def test_another_address_than_loopback_is_open_to_whoever_reaches_it(
    pair: Pair, agents: Callable[..., Agent]
) -> None:
    node = pair.node
    one = agents(on_uplink(), "--listen=192.168.9.1:9800")
    one.says("serves /metrics at 192.168.9.1, port 9800")
    asked = ["/usr/bin/python3", "-c", SCRAPE, "http://192.168.9.1:9800/metrics"]
    assert node.in_pod("A-1", *asked).endswith("# EOF\n")


def test_loopback_is_closed_to_a_pod_that_gets_there(pair: Pair, agents: Callable[..., Agent]) -> None:
    """Where portmap has set route_localnet, the node takes pods' packets to 127.0.0.1 for its own."""
    node = pair.node
    agents(on_uplink()).says("serves /metrics")
    node.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/conf/cni-a/route_localnet")
    for line in (
        "ip netns exec A-1 sh -c 'echo 1 >/proc/sys/net/ipv4/conf/eth0/route_localnet'",
        "ip netns exec A-1 ip route add 127.0.0.1/32 via 172.16.1.1 dev eth0 src 172.16.1.2 table 7",
        "ip netns exec A-1 ip rule add pref 0 to 127.0.0.1 table 7",
        "ip netns exec A-1 ip rule delete pref 0 table local",
        "ip netns exec A-1 ip rule add pref 10 table local",
    ):
        node.run("sh", "-c", line)
    code = (
        "import socket\n"
        "made = socket.create_connection(('127.0.0.1', 9725), 30)\n"
        "made.sendall(b'GET /metrics HTTP/1.1\\r\\n\\r\\n')\n"
        "try: print(made.recv(1 << 16))\n"
        "except ConnectionResetError: print(b'')\n"
    )
    assert node.in_pod("A-1", "/usr/bin/python3", "-c", code) == "b''\n"
    assert scraped(node)


@pytest.mark.long(one_in=0)
def test_a_newer_version_s_takes_the_place_of_an_older_and_not_the_other_way(
    pair: Pair, agents: Callable[..., Agent], tmp_path: Path
) -> None:
    """Or two would take turns in making the kernel what each of them has learned."""
    node, newer = pair.node, build(tmp_path, "9.9.9", other_kernel=True)
    old = agents(on_uplink())
    old.says("serves /metrics")
    new = agents(on_uplink(cluster="b"), plugin=newer)
    old.says("a newer version's takes this one's place")
    assert old.process.wait(PATIENCE) == 0
    new.says("serves /metrics")
    new.says("repaired: ")
    again = agents(on_uplink())
    again.says("another looks after this node")
    assert [labels["version"] for labels, _ in scraped(node)["concorde_build_info"]] == ["9.9.9"]


def test_a_refused_pod_is_told_of_once_whoever_looks_after_the_node(
    pair: Pair, agents: Callable[..., Agent], tmp_path: Path
) -> None:
    node = pair.node
    certificate, key = tmp_path / "ca.crt", tmp_path / "key.pem"
    openssl_makes(certificate, key, "-addext", "subjectAltName=IP:127.0.0.1")
    (tmp_path / "token").write_text("who-I-am")
    env = "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=6443"
    api = str(Path(__file__).with_name("api.py"))
    node.add_pod_namespace("B-2")
    agents(on_uplink()).says("serves /metrics")
    with node.running("/usr/bin/python3", api, "6443", certificate, key) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "serves\n"
        waiting = agents(on_uplink(cluster="b"), "--account", str(tmp_path), env=env)
        waiting.says("another looks after this node")
        until(lambda: node.run("sh", "-c", "ls /run/concorde/cluster-b").count("refusals"))
        arguments = "K8S_POD_NAMESPACE=web;K8S_POD_NAME=shop;K8S_POD_UID=0a-1b"
        for guarantee in ("950M", "950M", "a lot"):
            document = on_uplink(guarantee, cluster="b")
            assert "code" in node.call("ADD", "B-2", document, arguments=arguments)
        told = [json.loads(server.stdout.readline()) for _ in range(2)]
    assert {one["path"] for one in told} == {"/api/v1/namespaces/web/events"}
    assert [one["event"]["reason"] for one in told] == ["PromiseRefused"] * 2
    first, second = (one["event"]["message"] for one in told)
    assert "no room for a guarantee of 950 Mbit/s on eth0" in first
    assert "held by" in first
    assert "a lot" in second


@pytest.mark.alone
def test_the_other_cluster_s_has_taken_over_within_five_seconds(
    pair: Pair, agents: Callable[..., Agent]
) -> None:
    def judge(factor: int) -> None:
        took = []
        for _ in range(factor):
            first = agents(on_uplink())
            first.says("serves /metrics")
            second = agents(on_uplink(cluster="b"))
            second.says("another looks after this node")
            first.kill()
            begun = time.monotonic()
            second.says("serves /metrics")
            until(lambda: looked(pair.node))
            took.append(time.monotonic() - begun)
            second.kill()
        assert min(took) <= 5, took

    cases.with_more_samples(judge)


@pytest.mark.alone
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_a_floor_holds_again_after_a_flush_under_traffic(node: Node, agents: Callable[..., Agent]) -> None:
    """Without its tables the promised pod's packets have no class, and share with the flood."""
    link = {"capacity": "100M"}
    pair = Pair(node)
    pair.bring_up({"A-1": on_uplink("60M", **link), "A-2": on_uplink("", **link)})
    one = agents(on_uplink(**link), "--every", "60")
    one.says("serves /metrics")
    until(lambda: looked(node))

    def judge(factor: int) -> None:
        promised = gained(lambda: pair.classes()["c0de:10"], 2 * factor) * 8
        assert promised > 0.95 * 60e6, promised

    flood = pair.iperf("A-2", 5202, HOST["two"], "-u -b 0 -l 1000")
    with pair.iperf("A-1", 5201, HOST["two"], ""), flood:
        cases.with_more_samples(judge)
        node.run("nft", "flush", "ruleset")
        until(lambda: value(node, "concorde_repairs_total") > 0)
        assert value(node, "concorde_differences") > 0
        cases.with_more_samples(judge)


def used(process: int) -> float:
    """Processor time of a process and of its children that have ended (seconds)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def peak(process: int) -> int:
    """The most memory that a process had (bytes)."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (kibibytes,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kibibytes) << 10


# Packets to 60,000 ports of as many addresses, as fast as one process makes them.
FLOOD = """
import itertools, socket
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in itertools.count():
    try:
        out.sendto(bytes(64), (f"172.16.{n >> 8 & 255}.{n & 255}", n % 60000 + 1))
    except OSError:
        pass
"""
SCRAPES_A_MINUTE = 4
LOOKS = 10


@pytest.mark.alone
@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("flooding", [False, True])
def test_it_costs_a_crowded_node_little(node: Node, agents: Callable[..., Agent], flooding: bool) -> None:
    """A hundredth of a processor, with one look and four scrapes a minute, and 40 MB."""
    pods = cases.count("CONCORDE_AGENT_PODS", 25, 250)
    pair = Pair(node)
    pair.bring_up({f"P-{number}": on_uplink("3600k") for number in range(pods)})
    one = agents(on_uplink(), "--every", "1")
    one.says("serves /metrics")
    until(lambda: looked(node))
    with ExitStack() as stack:
        if flooding:
            flood = "nsenter", "--net=/run/netns/P-1", "/usr/bin/python3", "-c", FLOOD
            stack.enter_context(node.running(*flood))

        def judge(factor: int) -> None:
            look = gained(lambda: round(used(one.pid) * 1e6), LOOKS * factor) / 1e6  # one a second
            before = used(one.pid)
            for _ in range(LOOKS * factor):
                scraped(node)
            scrape = (used(one.pid) - before) / (LOOKS * factor)  # looks made meanwhile count, too
            share = (look + SCRAPES_A_MINUTE * scrape) / 60
            print(f"{pods} pods: look {look:.3f} s, scrape {scrape:.3f} s, {share:.2%} of a processor")  # noqa: T201
            assert share <= 0.01

        cases.with_more_samples(judge)
    assert peak(one.pid) <= 40 << 20
