"""Whatever a runtime, an operator or a pod's author sends: status and form are right, and nothing takes long.

CONCORDE_PLUGIN_INPUTS says how many inputs are generated.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests import cases
from tests.paths import ROOT
from tests.system.plugin.conftest import CEILING, GUARANTEE, Document, Node
from tests.system.plugin.inside import Inside

PROGRAM = Path(__file__).with_name("inputs.py")
INPUTS = cases.count("CONCORDE_PLUGIN_INPUTS", 100, 20_000)
REAL_EACH = 20  # one in so many is a process with an interpreter of its own
MOST_LINES = 200_000  # of Python; an ADD takes 35,000
# The specification's codes, and ours; 100, a bug, is none of them.
CODES = {1, 2, 3, 4, 5, 6, 7, 11, 50, 51, *range(101, 110)}
VERSIONS = ("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
VERBS = ("ADD", "CHECK", "DEL", "GC", "STATUS", "VERSION")
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
# Made in the node: what a path may lead to.
PATHS: tuple[str, ...] = (
    "/run/netns/pod",
    "/run/netns/gone",
    "/run/odd/fifo",
    "/run/odd/zero",
    "/run/odd/huge",
    "/run/odd/directory",
)
PATHS += (
    "/proc/self/ns/net",
    "/proc/self/ns/mnt",
    "/run/odd/subnet.env",
    "/run/odd/link",
    "/dev/full",
    "/run",
)

words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
paths = st.sampled_from(PATHS)
# Never one that could lead out of the node's own /run: a state directory is made.
states = st.sampled_from(["/run/concorde", "/run/odd/fifo", "/run/odd/link", "/run", "/", "/run/../x"])
relative = words.map(lambda text: text.lstrip("/"))
interfaces = st.sampled_from(
    ["eth0", "lo", "cni-net", "veth0123456789a", "eth0-peer", "sixteen-letters-", "a b"]
)
quantities = st.sampled_from(["1G", "1000k", "0.5G", "1e9", "1e99", "-1", "1Gi", "１G", "2T", "", "1G " * 20])
subnets = st.sampled_from(
    ["10.0.0.0/24", "10.0.0.1/24", "10.0.0.0/31", "0.0.0.0/8", "fd00::/64", "255.255.255.0/24"]
)
ends: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={"name": interfaces | json_values, "mac": words | json_values, "sandbox": paths | json_values},
)
ips: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {}, optional={"address": subnets | st.sampled_from(["a.b", "1.2.3.4", "::1/64"]) | json_values}
)
results = st.fixed_dictionaries(
    {},
    optional={
        "cniVersion": st.sampled_from(VERSIONS) | json_values,
        "interfaces": st.lists(ends | json_values, max_size=4) | json_values,
        "ips": st.lists(ips | json_values, max_size=4) | json_values,
        "routes": st.lists(json_values, max_size=3) | json_values,
        "dns": json_values,
    },
)
of_pods = st.fixed_dictionaries({}, optional={GUARANTEE: quantities | json_values, CEILING: quantities})
runtime = st.fixed_dictionaries(
    {},
    optional={
        ANNOTATIONS: of_pods | json_values,
        "bandwidth": st.dictionaries(
            st.sampled_from(["egressRate", "EgressRate", "egressBurst", "x"]), st.integers() | json_values
        ),
    },
)
valid = st.lists(
    st.fixed_dictionaries({"containerID": st.text(max_size=9), "ifname": interfaces}) | json_values,
    max_size=4,
)
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "cniVersion": st.sampled_from(VERSIONS) | json_values,
    "name": st.sampled_from(["node", "net", "a b", ""]) | json_values,
    "bridge": interfaces | json_values,
    "subnet": subnets | json_values,
    "subnetFile": paths | relative | json_values,
    "stateDir": states | relative | st.integers(),
    "mtu": st.integers(0, 70_000) | json_values,
    "burst": st.integers() | json_values,
    "enforcement": st.sampled_from(["pod", "node", "none"]) | json_values,
    "count": st.sampled_from(["layer2", "payload"]) | json_values,
    "defaultGuarantee": quantities | json_values,
    "uplink": interfaces | json_values,
    "capacity": quantities | json_values,
    "reserve": st.floats() | json_values,
    "controlPorts": st.lists(st.integers(), max_size=20) | json_values,
    "encapsulation": st.integers() | json_values,
    "frameOverhead": st.integers() | json_values,
    "segment": json_values,
    "takeOver": json_values,
    "isDefaultGateway": json_values,
    "dns": json_values,
    "prevResult": results | json_values,
    "runtimeConfig": runtime | json_values,
    "cni.dev/valid-attachments": valid | json_values,
    "cni.dev/attachments": valid | json_values,
}
WHOLE: Document = {
    "cniVersion": "1.1.0",
    "name": "net",
    "type": "concorde",
    "subnet": "10.0.0.0/24",
    "cni.dev/valid-attachments": [],
}


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """A configuration that is right but for some keys."""
    changed = draw(st.lists(st.sampled_from(sorted(KEYS)), max_size=4, unique=True))
    document = {**WHOLE, **{key: draw(KEYS[key]) for key in changed}}
    for key in draw(st.lists(st.sampled_from(sorted(WHOLE)), max_size=1)):
        if key not in changed:
            del document[key]
    return json.dumps(document).encode()


@st.composite
def cut(draw: st.DrawFn) -> bytes:
    """The same, cut off or with a byte changed."""
    content = bytearray(draw(documents()))
    at = draw(st.integers(0, len(content) - 1))
    if draw(st.booleans()):
        del content[at:]
    else:
        content[at] = draw(st.integers(0, 255))
    return bytes(content)


def nested(depth: int) -> bytes:
    return json.dumps(WHOLE)[:-1].encode() + b', "prevResult": {"a": ' + b"[" * depth + b"]" * depth + b"}}"


contents = st.one_of(
    documents(),
    documents(),
    documents(),
    cut(),
    st.binary(max_size=60),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.integers(900, 1100).map(nested),
    st.integers(1, 100_000).map(nested),
)
subnet_files = st.one_of(
    st.builds(
        "FLANNEL_SUBNET={}\nFLANNEL_MTU={}\n".format, subnets | words, st.integers(0, 99_999).map(str) | words
    ).map(str.encode),
    st.binary(max_size=80),
)
files = st.one_of(st.none(), st.none(), st.none(), st.none(), subnet_files)
VARIABLES = {
    "CNI_COMMAND": words,
    "CNI_CONTAINERID": st.sampled_from(["", "a b", "-a", "x" * 201]) | words,
    "CNI_IFNAME": interfaces | words,
    "CNI_NETNS": paths | paths | words,
    "CNI_ARGS": st.just("K8S_POD_NAMESPACE=a;K8S_POD_NAME=b") | words,
    "CNI_PATH": words,
}


@st.composite
def environments(draw: st.DrawFn) -> dict[str, str]:
    """What a runtime gives, but for one variable now and then."""
    right = {"CNI_CONTAINERID": "pod", "CNI_IFNAME": "eth0", "CNI_NETNS": "/run/netns/pod"}
    right["CNI_COMMAND"] = draw(st.sampled_from(VERBS))
    changed = draw(st.none() | st.none() | st.sampled_from(sorted(VARIABLES)))
    if changed is not None:
        right[changed] = draw(VARIABLES[changed])
    return right


class Caller:
    """A node, and the program inside that makes the calls there."""

    def __init__(self, plugin: Path) -> None:
        self.node = Node(plugin)
        self.node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
        self.node.add_pod_namespace("pod")
        self.node.run(
            "sh",
            "-c",
            "mkdir -p /run/odd/directory; cd /run/odd; mkfifo fifo; ln -s /dev/zero zero;"
            " truncate -s 1G huge; ln -s /run/elsewhere link",
        )
        self.inside = Inside(self.node, PROGRAM, plugin, ROOT / "plugin", path=ROOT)
        self.calls = 0

    def call(self, environment: dict[str, str], content: bytes) -> Document:
        self.calls += 1
        environment = {"PATH": os.environ["PATH"], **environment}
        case = {"environment": environment, "stdin": content.hex(), "real": self.calls % REAL_EACH == 0}
        answer: Document = self.inside.ask(case)
        return answer

    def close(self) -> None:
        self.inside.close()
        self.node.close()


@pytest.fixture
def caller(plugin: Path) -> Iterator[Caller]:
    made = Caller(plugin)
    yield made
    made.close()


def outcome(answer: Document) -> str:
    """What a call came to. Fails for what breaks the protocol."""
    assert answer["lines"] < MOST_LINES, answer
    assert answer["status"] in (0, 1), answer
    assert answer["stderr"] == "", answer
    if answer["status"] == 0:
        assert not answer["stdout"] or isinstance(json.loads(answer["stdout"]), dict), answer
        return "done"
    assert answer["stdout"].count("\n") == 1, answer
    error = json.loads(answer["stdout"])
    assert error.keys() - {"details"} == {"cniVersion", "code", "msg"}, answer
    assert error["cniVersion"] in VERSIONS, answer
    assert error["code"] in CODES, answer
    assert error["msg"], answer
    # Python's words: class names, its way to show an error of the system.
    assert not re.search(r"[a-z]Error\b|Exception\b|\[Errno|Traceback|NoneType", error["msg"]), answer
    return f"code {error['code']}"


@pytest.mark.long
def test_any_input_gets_a_proper_answer_for_little_work(caller: Caller) -> None:
    counted: Counter[str] = Counter()

    @seed(cases.seed())
    @settings(
        max_examples=INPUTS,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(environment=environments(), content=contents, subnet_file=files)
    def call(environment: dict[str, str], content: bytes, subnet_file: bytes | None) -> None:
        if subnet_file is not None:
            path = "/run/odd/subnet.env"
            caller.node.run("/usr/bin/python3", "-c", WRITE, path, subnet_file.hex())
            content = json.dumps({**WHOLE, "subnet": None, "subnetFile": path}).encode()
        counted[outcome(caller.call(environment, content))] += 1

    call()
    print(sorted(counted.items()))  # noqa: T201 - shown when it fails, or with -s
    cases.about(counted, "done", "code 4", "code 6", "code 7")


WRITE = "import sys; open(sys.argv[1], 'wb').write(bytes.fromhex(sys.argv[2]))"
