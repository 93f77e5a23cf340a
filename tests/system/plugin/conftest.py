"""A node of one's own for each test, and a runtime that speaks CNI to the built plugin there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

REFERENCE = Path("/usr/lib/cni")
GUARANTEE = "concorde.contmec.dev/egress-guarantee"
ANSWERS = "concorde.contmec.dev/answers-guarantee"
INGRESS = "concorde.contmec.dev/ingress-guarantee"
CEILING = "kubernetes.io/egress-bandwidth"
Document = dict[str, Any]


# Waits, when it is to change something, until it is told to.
SLOW_NFT = """#!/bin/sh
[ "$*" = "-f -" ] || exec /usr/sbin/nft "$@"
cat > /run/batch.$$
[ -e /run/held ] || { : > /run/held; echo > /run/reached; read go < /run/go; }
exec /usr/sbin/nft -f /run/batch.$$
"""


LEDGER = "/run/concorde/node/ledger.sqlite"
LEASES = """
import json, os, sqlite3, sys
there = os.path.exists(sys.argv[1])
ledger = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro" if there else ":memory:", uri=True)
made = ledger.execute("SELECT 1 FROM sqlite_schema WHERE name = 'attachment'").fetchone()
query = "SELECT container, address FROM attachment WHERE network = ?"
print(json.dumps(list(ledger.execute(query, sys.argv[2:])) if made else []))
"""


class Node:
    """Namespaces in the place of a node; they end with the process that holds them."""

    def __init__(self, plugin: Path) -> None:
        self.plugin = plugin
        self._user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        hold = "mount -t tmpfs tmpfs /run && mkdir /run/netns && ip link set lo up && echo ready && exec cat"
        self._holder = subprocess.Popen(
            ["unshare", *self._user, *namespaces, "sh", "-c", hold],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"ready\n"
        self._init = child_of(self._holder.pid)

    @property
    def in_user_namespace(self) -> bool:
        """Whether it knows no user but one, as an ordinary user started it."""
        return bool(self._user)

    def close(self) -> None:
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.close()
        self._holder.stdout.close()
        self._holder.wait()

    def argv(self, *command: str | Path) -> list[str]:
        user = ["--user", "--preserve-credentials"] if self._user else []
        enter = ["nsenter", "-t", str(self._init), *user, "--net", "--mount", "--pid"]
        return [*enter, *map(str, command)]

    def run(self, *command: str | Path, stdin: str = "") -> str:
        done = subprocess.run(self.argv(*command), input=stdin, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"
        return done.stdout

    @contextmanager
    def running(self, *command: str | Path) -> Iterator[subprocess.Popen[str]]:
        """Lend a program that is at work on the node, and end it.

        What nsenter leads into another process namespace is a child of its, and is to end with it: it has
        when nobody has its standard output open any more.
        """
        argv = self.argv("setpriv", "--pdeathsig=KILL", *command)
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                end(process)
                assert process.stdout is not None
                process.stdout.read()

    def slow_nft(self) -> str:
        """A directory with an nft of which the first to make tables says so in /run/reached, for /run/go.

        There are none then: so the next ADD has to make them. All else it is told the kernel directly.
        """
        self.run("nft", "flush", "ruleset")
        self.run("sh", "-c", "mkdir /run/slow; cat > /run/slow/nft; chmod +x /run/slow/nft", stdin=SLOW_NFT)
        self.run("mkfifo", "/run/reached", "/run/go")
        return "/run/slow"

    def show(self, *command: str, pod: str = "") -> Any:
        """The JSON an `ip -j` or `tc -j` command prints, on the node or in a pod."""
        return json.loads((self.in_pod(pod, *command) if pod else self.run(*command)) or "[]")

    def in_pod(self, pod: str, *command: str, stdin: str = "") -> str:
        return self.run("nsenter", f"--net=/run/netns/{pod}", *command, stdin=stdin)

    def add_pod_namespace(self, *pods: str) -> None:
        self.run("ip", "-batch", "-", stdin="".join(f"netns add {pod}\n" for pod in pods))

    def environment(
        self, verb: str, pod: str, netns: str | None = None, interface: str = "eth0"
    ) -> dict[str, str]:
        return {
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": pod,
            "CNI_IFNAME": interface,
            "CNI_NETNS": f"/run/netns/{pod}" if netns is None else netns,
            "CNI_PATH": f"{self.plugin.parent}:{REFERENCE}",
            "PATH": os.environ["PATH"],
        }

    def start(
        self,
        verb: str,
        pod: str,
        network: Document,
        *,
        netns: str | None = None,
        path: str = "",
        plugin: Path | None = None,
        arguments: str = "",
        interface: str = "eth0",
    ) -> subprocess.Popen[bytes]:
        """Start a plugin as libcni does; ``arguments`` are its CNI_ARGS."""
        environment = self.environment(verb, pod, netns, interface)
        if arguments:
            environment["CNI_ARGS"] = arguments
        environment["PATH"] = f"{path}:{environment['PATH']}"
        command = self.argv(plugin or self.plugin)
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        assert process.stdin is not None
        process.stdin.write(json.dumps(network).encode())
        process.stdin.close()
        process.stdin = None
        return process

    def call(
        self,
        verb: str,
        pod: str,
        network: Document,
        *,
        netns: str | None = None,
        plugin: Path | None = None,
        arguments: str = "",
        interface: str = "eth0",
    ) -> Document:
        """Call a plugin; its answer, or an empty object, or its error object."""
        started = self.start(
            verb, pod, network, netns=netns, plugin=plugin, arguments=arguments, interface=interface
        )
        stdout, stderr = started.communicate()
        assert stderr == b""
        answer: Document = json.loads(stdout or b"{}")
        return answer

    def leases(self, network: str) -> list[tuple[str, str]]:
        """Container and address of every lease, straight from the ledger; none if it was not made (again)."""
        rows = json.loads(self.run("/usr/bin/python3", "-c", LEASES, LEDGER, network))
        return [tuple(row) for row in rows]

    def veths(self) -> set[str]:
        return {link["ifname"] for link in self.show("ip", "-j", "link", "show", "type", "veth")}


def end(process: subprocess.Popen[str]) -> None:
    """Kill what nsenter has led to a node, and wait for nsenter, which then ends by itself.

    If nsenter went first, the machine's init would have to reap it; some look now and then, and so long the
    node's end waits (zap_pid_ns_processes in kernel/pid_namespace.c).
    """
    try:
        os.kill(child_of(process.pid), signal.SIGKILL)
    except (IndexError, OSError):  # nobody is there yet, or any more
        process.kill()
    process.wait()


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("cni")
    subprocess.run([sys.executable, ROOT / "plugin/build.py", "--output", output], check=True)
    return output / "concorde"


@pytest.fixture
def node(plugin: Path) -> Iterator[Node]:
    made = Node(plugin)
    yield made
    made.close()


def network(name: str = "cluster-a", third: int = 16, **keys: Any) -> Document:
    """Cluster A's network of the paper's figure 4, or another like it."""
    return {
        "cniVersion": "1.1.0",
        "name": name,
        "type": "concorde",
        "bridge": f"cni-{name[-1]}",
        "subnet": f"172.{third}.1.0/24",
        "mtu": 1450,
        **keys,
    }


def promising(guarantee: str = "", ceiling: str = "", **keys: Any) -> Document:
    """The network as passed for a pod with these annotations."""
    annotations = {key: value for key, value in ((GUARANTEE, guarantee), (CEILING, ceiling)) if value}
    return network(runtimeConfig={"io.kubernetes.cri.pod-annotations": annotations}, **keys)
