"""What `concorde metrics` tells is what the kernel has counted, and telling it changes nothing."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed
from prometheus_client.parser import text_fd_to_metric_families

from tests import cases, debian13
from tests.system.plugin.conftest import Node, promising
from tests.system.plugin.uplinks import HOST, SUMS, Pair, on_uplink

SEND = str(Path(__file__).with_name("send.py"))
REMOTE = "172.16.2.77"
CROWD = cases.count("CONCORDE_METRICS_PODS", 3, 250)
MOST_STARTS = 5  # of Python, which takes 10 ms of processor here: 50 ms
COUNTED = (
    "sent_bytes_total",
    "sent_packets_total",
    "dropped_packets_total",
    "backlog_bytes",
    "backlog_packets",
)
NOT_ROOT = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")  # its files, and none of its rights
FORGED, FOR_A_VTEP, A_FEW = 300, 200, 100
OF = {"2": "a-1", "3": "a-2"}  # by an address's end
Counters = dict[str, tuple[int, ...]]


@pytest.fixture
def pair(node: Node) -> Pair:
    """A-1 with a guarantee, A-2 with a ceiling, on a link slow enough to drop."""
    made = Pair(node)
    node.add_pod_namespace("A-1", "A-2")
    for pod, document in (
        ("A-1", on_uplink("1M", capacity="10M")),
        ("A-2", on_uplink("", "8k", capacity="10M")),
    ):
        answer = node.call(
            "ADD", pod, document, arguments=f"K8S_POD_NAMESPACE=web;K8S_POD_NAME={pod.lower()}"
        )
        assert "code" not in answer, answer
    made.plug_in()
    return made


def told(node: Node, *before: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in parsed(node.run(*before, node.plugin, "metrics")):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def counters_told(node: Node, at: str) -> Counters:
    """By a class's name on the uplink, or by the pod's name within pods."""
    found = told(node)
    columns = [
        {
            labels["class" if at == "uplink" else "pod"]: int(value)
            for labels, value in found[f"concorde_class_{name}"]
            if labels["at"] == at
        }
        for name in COUNTED
    ]
    return {name: tuple(column[name] for column in columns) for name in columns[0]}


def counters_by_tc(shown: str) -> Counters:
    """The same of `tc -s class show`."""
    words = shown.replace("(", " ").replace(",", " ").split()
    starts = [at for at, word in enumerate(words) if word == "class"]
    found = {}
    for at, end in zip(starts, [*starts[1:], len(words)], strict=True):
        own = words[at:end]
        if own[1] != "htb":
            continue  # of a queue
        sent, dropped, backlog = own.index("Sent"), own.index("dropped"), own.index("backlog")
        numbers = own[sent + 1], own[sent + 3], own[dropped + 1], own[backlog + 1], own[backlog + 2]
        found[own[2]] = tuple(size(number) for number in numbers)
    return found


def size(number: str) -> int:
    """Of `1000`, `1000b`, `7p`, or `4Kb`, which tc writes of what differs from 4096 by less than 16."""
    digits = number.rstrip("bp")
    return int(digits[:-1]) * 1024 if digits.endswith("K") else int(digits)


def flood(node: Node, pod: str, count: int) -> None:
    """Send so many datagrams faster than the link takes them."""
    spec = {"to": REMOTE, "port": 9, "count": count, "size": 1000}
    node.in_pod(pod, "/usr/bin/python3", SEND, json.dumps(spec))


def agreed(node: Node, at: str, *pod: str) -> tuple[Counters, Counters]:
    """What is told and what tc says at a moment between two looks of tc that are alike."""
    while True:
        before, found, after = by_tc(node, *pod), counters_told(node, at), by_tc(node, *pod)
        if before == after:
            return {name: rounded(counters) for name, counters in found.items()}, after


def rounded(counters: tuple[int, ...]) -> tuple[int, ...]:
    """With the backlog as tc writes it; see size()."""
    *others, backlog, packets = counters
    nearest = (backlog + 512) // 1024 * 1024
    return (*others, nearest if backlog >= 1024 and abs(nearest - backlog) < 16 else backlog, packets)


def by_tc(node: Node, *pod: str) -> Counters:
    show = ["tc", "-s", "class", "show", "dev", "eth0"]
    return counters_by_tc(node.in_pod(*pod, *show) if pod else node.run(*show))


def test_counters_of_the_uplink_are_those_of_tc(pair: Pair) -> None:
    flood(pair.node, "A-1", 500)
    found, shown = agreed(pair.node, "uplink")
    assert found == {name: counters for name, counters in shown.items() if name not in SUMS}
    assert found["c0de:10"][0] > 10_000
    assert found["c0de:10"][2] > 0  # dropped


def test_counters_within_pods_are_those_of_tc(pair: Pair) -> None:
    flood(pair.node, "A-2", 20)  # a packet a second, so most of them wait
    found, shown = agreed(pair.node, "pod", "A-2")
    assert found == {"a-2": shown["1:1"]}
    assert found["a-2"][-1] > 0


def test_a_pod_is_named_and_its_link_told(pair: Pair) -> None:
    found = told(pair.node)
    (labels, guarantee), *others = found["concorde_guarantee_bits_per_second"]
    assert (labels["namespace"], labels["pod"], guarantee, others) == ("web", "a-1", 1e6, [])
    book = json.loads(pair.node.run(pair.node.plugin, "ledger", "--json"))
    for name in ("promised", "free"):
        assert found[f"concorde_uplink_{name}_bits_per_second"] == [
            ({"device": "eth0"}, book["trees"][0][name])
        ]


def test_enforcement_pod_is_told_too(node: Node) -> None:
    node.add_pod_namespace("A-1")
    assert "code" not in node.call("ADD", "A-1", promising("5M"))
    found = told(node)
    assert [labels["at"] for labels, _ in found["concorde_class_rate_bits_per_second"]] == ["pod"]
    assert found["concorde_class_rate_bits_per_second"][0][1] == 5e6
    assert not any(name.startswith("concorde_uplink") for name in found)


def test_without_root_s_rights_the_uplink_is_told_and_what_is_not_seen_is_counted(pair: Pair) -> None:
    found = told(pair.node, *NOT_ROOT)
    places = [labels["at"] for labels, _ in found["concorde_class_sent_bytes_total"]]
    assert places == ["uplink"] * 5
    assert found["concorde_unseen_classes"] == [({}, 1)]
    assert told(pair.node)["concorde_unseen_classes"] == [({}, 0)]
    assert "concorde_refused_packets_total" not in found


def test_refused_packets_are_told_of_the_pod_that_sent_them(pair: Pair) -> None:
    """By its port, and where packets are routed; a pod's own kernel adds a few (IPv6) at any time."""
    node = pair.node
    for spec in (
        {"to": REMOTE, "port": 9, "forged": "172.16.1.77", "count": FORGED},
        {"to": HOST["one"], "port": 8472, "count": FOR_A_VTEP},
    ):
        node.in_pod("A-1", "/usr/bin/python3", SEND, json.dumps(spec))
    while True:
        before, found, after = refused_by_nft(node), told(node), refused_by_nft(node)
        if before == after:
            break
    refused = {
        labels["pod"]: (labels, packets) for labels, packets in found["concorde_refused_packets_total"]
    }
    assert {pod: packets for pod, (_, packets) in refused.items()} == after
    assert FORGED + FOR_A_VTEP <= after["a-1"] < FORGED + FOR_A_VTEP + A_FEW
    assert after["a-2"] < A_FEW
    labels, _ = refused["a-1"]
    assert labels["port"] in node.veths()
    assert (labels["network"], labels["namespace"]) == ("cluster-a", "web")


def refused_by_nft(node: Node) -> dict[str, int]:
    """By the pod, what nft says of its port and of its addresses."""
    found = {"a-1": 0, "a-2": 0}
    ports = {labels["port"]: labels["pod"] for labels, _ in told(node)["concorde_refused_packets_total"]}
    for family, name in (("bridge", "dropped"), ("ip", "refused"), ("ip6", "refused")):
        *_, shown = node.show("nft", "-j", "list", "set", family, "concorde", name)["nftables"]
        for element in shown["set"]["elem"]:
            key = element["elem"]["val"]
            pod = ports[key] if isinstance(key, str) else OF[key["concat"][1][-1]]
            found[pod] += element["elem"]["counter"]["packets"]
    return found


def test_nothing_of_the_state_is_written(pair: Pair) -> None:
    node = pair.node
    look = [
        "sh",
        "-c",
        "find /run/concorde -printf '%p %m %T@ %C@ %s\\n' | sort; sha256sum /run/concorde/*/*.sqlite",
    ]
    before = node.run(*look)
    node.run("sh", "-c", "mount --bind /run/concorde /run/concorde && mount -o remount,ro,bind /run/concorde")
    assert told(node)["concorde_attachments"] == [({"network": "cluster-a"}, 2)]
    assert node.run(*look) == before


def test_a_file_is_replaced_at_once_or_stays(pair: Pair) -> None:
    node = pair.node
    node.run(
        "sh",
        "-c",
        "mkdir /run/text; echo before >/run/text/concorde.prom; ln /run/text/concorde.prom /run/text/old",
    )
    assert node.run(node.plugin, "metrics", "--output", "/run/text/concorde.prom") == ""
    assert node.run("cat", "/run/text/old") == "before\n"  # another file has its name now
    assert node.run("sh", "-c", "cd /run/text; stat -c '%n %a' *; ls -A") == (
        "concorde.prom 644\nold 644\nconcorde.prom\nold\n"
    )
    assert node.run("tail", "-n", "1", "/run/text/concorde.prom") == "# EOF\n"
    node.run(
        "sh",
        "-c",
        "dd if=/dev/urandom of=/run/concorde/node/ledger.sqlite bs=1 seek=4096 count=4096 conv=notrunc",
    )
    status, words = asked(node, "--output=/run/text/concorde.prom")
    assert status == 4
    assert "concorde: /run/concorde/node/ledger.sqlite is damaged" in words
    assert node.run("tail", "-n", "1", "/run/text/concorde.prom") == "# EOF\n"
    assert asked(node, "--output=/nowhere/concorde.prom", "--state-dir=/run/none") == (
        4, "concorde: /nowhere/concorde.prom: No such file or directory\n",
    )  # fmt: skip


def asked(node: Node, *options: str) -> tuple[int, str]:
    done = subprocess.run(node.argv(node.plugin, "metrics", *options), capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_a_node_without_pods_has_no_promises(node: Node) -> None:
    assert told(node).keys() == {"concorde_build_info", "concorde_unseen_classes"}


@pytest.mark.long(one_in=0)
def test_node_exporter_takes_the_file(pair: Pair, tmp_path: Path) -> None:
    """The real one reads Prometheus' older format: every sample must come out."""
    program = debian13.program("prometheus-node-exporter", "usr/bin/prometheus-node-exporter", tmp_path)
    node = pair.node
    node.run("mkdir", "/run/text")
    node.run(node.plugin, "metrics", "--output", "/run/text/concorde.prom")
    serve: list[str | Path] = [
        program,
        "--collector.disable-defaults",
        "--collector.textfile",
        "--web.listen-address=127.0.0.1:9100",
    ]
    argv = node.argv(*serve, "--collector.textfile.directory=/run/text")
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as exporter:
        assert exporter.stderr is not None
        while "Listening on" not in (line := exporter.stderr.readline()):
            assert line, "it has ended"
        shown = node.run("/usr/bin/python3", "-c", ASK, "http://127.0.0.1:9100/metrics")
        exporter.terminate()
    assert "node_textfile_scrape_error 0\n" in shown
    assert samples(shown) == samples(node.run("cat", "/run/text/concorde.prom"))


ASK = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())"


def samples(text: str) -> set[tuple[str, frozenset[tuple[str, str]], float]]:
    """Names, labels that are not empty, and values."""
    return {
        (sample.name, frozenset((key, value) for key, value in sample.labels.items() if value), sample.value)
        for family in text_fd_to_metric_families(io.StringIO(text))
        for sample in family.samples
        if sample.name.startswith("concorde_")
    }


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.parametrize("where", ["uplink", "pod"])
def test_a_crowded_node_is_told_in_the_time_of_five_starts_of_python(node: Node, where: str) -> None:
    """CONCORDE_METRICS_PODS says how many pods; the best of some runs is the programs' own time."""
    Pair(node)
    pods = [f"P-{number}" for number in range(CROWD)]
    node.add_pod_namespace(*pods)
    for pod in pods:
        answer = node.call("ADD", pod, on_uplink("3600k") if where == "uplink" else promising("3600k"))
        assert "code" not in answer, answer
    assert len(counters_told(node, where)) >= CROWD

    def judge(factor: int) -> None:
        tries = range(7 * factor)
        took = min(seconds(node, node.plugin, "metrics", "--output", "/run/x.prom") for _ in tries)
        start = min(seconds(node, "/usr/bin/python3", "-c", "pass") for _ in tries)
        assert took <= MOST_STARTS * start

    cases.with_more_samples(judge)


def seconds(node: Node, *argv: str | Path) -> float:
    """Processor time of one program, user's and system's (seconds)."""
    code = (
        "import json, resource, subprocess, sys;"
        "subprocess.run(sys.argv[1:], check=True);"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime)"
    )
    return float(node.run("/usr/bin/python3", "-c", code, *argv))
