"""How fast a node's proxy is with many services, on a real API server; kube-proxy beside it, if it is asked.

Each has a cluster of its own in network namespaces of its own: etcd, the API server, the proxy, and two pods.
Services and their slices are objects; the endpoints of the first and the last are addresses of one pod.

Reported are the time from the proxy's start until the last service answers; from a slice's change until the
kernel has it, which is a new generation of nftables (of kube-proxy, which writes several: that it says so);
and how long a new connection takes to the first service, to the last, and past all services to an endpoint.
Connections to the last service go on while its endpoints change: any that fails, or whose first packet is
sent twice, is counted.

kube-proxy is built at first (``testbed.supplies.getting.proxy``); ``legacy`` and ``nft`` are the iptables
that it uses. It writes at most once a second (``--iptables-min-sync-period``): changes are further apart.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from struct import pack, unpack
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from edge import netlink as nl  # noqa: E402
from edge.http import Json  # noqa: E402
from testbed.supplies import getting  # noqa: E402
from tests.apis import Api, served  # noqa: E402
from tests.ports import free_ports  # noqa: E402

SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1beta1/namespaces/default/endpointslices"
RANGE, PODS = "10.96.0.0/16", "10.61.0.0/24"
OURS = "ours"
BESIDE = ("legacy", "nft")  # iptables for kube-proxy
SYNCED = "syncProxyRules took"
LINKS = """
ip link set lo up
ip link add br0 type bridge && ip link set br0 up && ip address add 10.61.0.1/24 dev br0
for pod in client server; do
    ip netns add $pod && ip link add v$pod type veth peer name eth0 netns $pod
    ip link set v$pod master br0 up && ip -n $pod link set lo up && ip -n $pod link set eth0 up
done
ip -n client address add 10.61.0.2/24 dev eth0 && ip -n client route add default via 10.61.0.1
ip -n server address add 10.61.0.3/24 dev eth0 && ip -n server route add default via 10.61.0.1
ip -n server route add local 10.62.0.0/16 dev lo && ip route add 10.62.0.0/16 via 10.61.0.3
echo 1 >/proc/sys/net/ipv4/ip_forward
"""
SERVE = """
import socket
listening = socket.create_server(("", 8080), backlog=4096)
while True:
    listening.accept()[0].close()
"""
# Connects by turns; the median of each, in microseconds, and how many failed, or took as long as if a packet
# had been lost (RFC 6298: 1 s).
CONNECT = """
import json, socket, sys, time
taken, lost = [[] for _ in sys.argv[2:]], 0
for _ in range(int(sys.argv[1])):
    for address, times in zip(sys.argv[2:], taken):
        host, port = address.split(":")
        begun = time.perf_counter()
        try:
            with socket.create_connection((host, int(port)), timeout=2) as connection:
                times.append((time.perf_counter() - begun) * 1e6)
                connection.recv(1)
                lost += times[-1] > 9e5
        except OSError:
            lost += 1
print(json.dumps([sorted(times)[len(times) // 2] for times in taken] + [lost]))
"""
# Says when an address answers for the first time; what is sent before is lost.
ANSWERED = """
import socket, sys, time
while True:
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=0.02).close()
        break
    except OSError:
        time.sleep(0.005)
print(time.monotonic())
"""
_GET_GENERATION, _ID = 10 << 8 | 16, 1  # NFT_MSG_GETGEN, NFTA_GEN_ID


class Asked(NamedTuple):
    """How many services, endpoints of each, and changes; how long somebody waits for rules (s)."""

    services: int
    endpoints: int
    changes: int
    patience: float


class Proxy(NamedTuple):
    """A program under test: its command, and how often it says, or the kernel, that rules were written."""

    command: list[str]
    written: Callable[[], int]
    apart: float  # seconds between changes
    environment: dict[str, str]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--services", type=int, default=1000, help="how many (%(default)s)")
    parser.add_argument("--endpoints", type=int, default=10, help="of each (%(default)s)")
    parser.add_argument("--changes", type=int, default=30, help="of one endpoint (%(default)s)")
    parser.add_argument("--patience", type=float, default=300, help="for first rules, s (%(default)s)")
    parser.add_argument("--beside", nargs="*", choices=BESIDE, default=[], help="kube-proxy by this iptables")
    parser.add_argument("--without-ours", action="store_true", help="only what is beside")
    told = parser.parse_args()
    asked = Asked(told.services, told.endpoints, told.changes, told.patience)
    if "BENCH_APART" in os.environ:
        alone(os.environ["BENCH_APART"], asked)
        return
    if told.beside:
        getting.proxy(say=lambda stage: print(stage, file=sys.stderr))
    print(f"{asked.services} services of {asked.endpoints} endpoints")
    names = [*([] if told.without_ours else [OURS]), *told.beside]
    found = {name if name == OURS else f"kube-proxy, {name}": apart(name) for name in names}
    for row in dict.fromkeys(row for column in found.values() for row in column):
        print(f"{row:46}" + "".join(f"{column.get(row, '-'):>22}" for column in found.values()))
    print(" " * 46 + "".join(f"{name:>22}" for name in found))


def apart(name: str) -> dict[str, str]:
    """Let one be measured in namespaces of its own; return its column of the table."""
    root = ["-r"] if os.geteuid() else []
    own = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    command = ["unshare", *root, *own, sys.executable, *sys.argv]
    environment = {**os.environ, "BENCH_APART": name}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    column: dict[str, str] = json.loads(done.stdout)
    return column


def alone(name: str, asked: Asked) -> None:
    """Measure one and print its column."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    subprocess.run(["sh", "-ec", LINKS], check=True)
    # In memory: how fast a disk is would be in each change.
    with tempfile.TemporaryDirectory(dir="/run") as directory, served(Path(directory), kinds=False) as api:
        api.node("bench")
        addresses = make(api, asked.services, asked.endpoints)
        print(json.dumps(measure(api, name, addresses, asked)))


def proxy_of(api: Api, name: str) -> Proxy:
    """Return what is measured by its name."""
    if name == OURS:
        command = [
            sys.executable, "-IS", str(ROOT / "edge"), "services-proxy", "--cluster=bench",
            f"--services={RANGE}", f"--pods={PODS}", "--node=bench", "--zone=a", f"--api={api.url}",
            f"--identity={api.admin}", f"--authority={api.authority}",
        ]  # fmt: skip
        return Proxy(command, generation, 0.1, {})
    healthy, metrics = free_ports(2)
    command = [
        str(getting.proxy()), f"--kubeconfig={kubeconfig(api)}", "--hostname-override=bench",
        "--proxy-mode=iptables", f"--cluster-cidr={PODS}", f"--healthz-bind-address=127.0.0.1:{healthy}",
        f"--metrics-bind-address=127.0.0.1:{metrics}", "--conntrack-max-per-core=0", "--v=4",
    ]  # fmt: skip
    own = api.directory / "iptables"
    own.mkdir()
    for program in ("iptables", "iptables-save", "iptables-restore"):
        kind = program.replace("iptables", f"iptables-{name}")
        (own / program).symlink_to(Path("/usr/sbin") / kind)
    log = api.directory / "proxy.log"
    return Proxy(command, lambda: log.read_text().count(SYNCED), 1.5, {"PATH": f"{own}:{os.environ['PATH']}"})


def kubeconfig(api: Api) -> Path:
    """Return a file that says where the API is, and who asks it."""
    path = api.directory / "kubeconfig"
    identity = {"client-certificate": str(api.admin), "client-key": str(api.admin)}
    server = {"server": api.url, "certificate-authority": str(api.authority)}
    path.write_text(
        json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "bench",
            "clusters": [{"name": "bench", "cluster": server}],
            "users": [{"name": "bench", "user": identity}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        })
    )  # fmt: skip
    return path


def measure(api: Api, name: str, addresses: list[str], asked: Asked) -> dict[str, str]:
    """Start a proxy, measure what it does, and return it in words by what it is."""
    server = subprocess.Popen(["ip", "netns", "exec", "server", sys.executable, "-ISc", SERVE])
    direct = connections("10.62.0.0:8080")[0]
    proxy, before = proxy_of(api, name), kernel_memory()
    with (api.directory / "proxy.log").open("w") as log:
        begun = time.monotonic()
        process = subprocess.Popen(proxy.command, stderr=log, env={**os.environ, **proxy.environment})
    try:
        first = answered(addresses[-1], asked.patience)
        found = {"until the last service answers, s": f"{first - begun:.2f}" if first else "-"}
        if first:
            found |= in_use(api, proxy, addresses, direct, asked)
        status = Path(f"/proc/{process.pid}/status").read_text()
        found["memory of the proxy at most, MiB"] = (
            f"{int(status.partition('VmHWM:')[2].split()[0]) / 1024:.0f}"
        )
        found["memory of the kernel, MiB"] = f"{(kernel_memory() - before) / 1024:.0f}"
    finally:
        for each in (process, server):
            each.kill()
    return found


def in_use(api: Api, proxy: Proxy, addresses: list[str], direct: float, asked: Asked) -> dict[str, str]:
    """Measure changes, and new connections."""
    last = len(addresses) - 1
    changed = []
    for number in range(asked.changes):
        time.sleep(proxy.apart)  # each is a change by itself, and not gathered with others
        changed.append(one_change(api, proxy, last, asked.endpoints, number))
    past, to_first, to_last, failed = connections(
        "10.62.0.0:8080", f"{addresses[0]}:80", f"{addresses[last]}:80"
    )
    with ThreadPoolExecutor(1) as pool:
        going_on, changes = pool.submit(connections, f"{addresses[last]}:80", count=20_000), 0
        while not going_on.done():
            one_change(api, proxy, last, asked.endpoints, asked.changes + changes)
            changes += 1
    return {
        "one endpoint's change, ms": spread([took for took, _ in changed]),
        "of it until the API has answered": spread([heard for _, heard in changed]),
        "new connection without rules, us": f"{direct:.1f}",
        "past services": f"{past:.1f}",
        "to the first": f"{to_first:.1f}",
        "to the last": f"{to_last:.1f} ({to_last / to_first:.2f} x)",
        "lost of 6,000 connections": f"{failed:.0f}",
        "lost of 20,000 to endpoints that change": f"{going_on.result()[-1]:.0f} ({changes} changes)",
    }


def make(api: Api, services: int, endpoints: int) -> list[str]:
    """Make services, and a slice of each; return their addresses in order."""
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(partial(post_service, api), range(services)))
        list(pool.map(lambda number: api.post(SLICES, sliced(number, services, endpoints)), range(services)))
    return made


def post_service(api: Api, number: int) -> str:
    """Make a service and return its address."""
    spec = {"ports": [{"name": "web", "port": 80, "targetPort": 8080}]}
    made = api.post(SERVICES, {"metadata": {"name": f"s{number}"}, "spec": spec})
    return str(made["spec"]["clusterIP"])


def sliced(number: int, services: int, endpoints: int) -> Json:
    """Return a slice; endpoints of the first service and of the last are the server's, from 10.62.0.0 on."""
    real = number in (0, services - 1)
    net, first = (62, (number > 0) * endpoints) if real else (64, number * endpoints)
    some = range(first, first + endpoints)
    addresses = [f"10.{net + at // 65536}.{at // 256 % 256}.{at % 256}" for at in some]
    return {
        "metadata": {"name": f"s{number}", "labels": {"kubernetes.io/service-name": f"s{number}"}},
        "addressType": "IPv4",
        "ports": [{"name": "web", "protocol": "TCP", "port": 8080}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
    }


def one_change(api: Api, proxy: Proxy, last: int, endpoints: int, number: int) -> tuple[float, float]:
    """Take an endpoint from the last service, or give it back.

    Return how long it took until rules were written, and until the API answered (ms).
    """
    count = proxy.written()
    whole: Any = sliced(last, last + 1, endpoints)["endpoints"]
    begun = time.monotonic()
    api.patch(f"{SLICES}/s{last}", {"endpoints": whole[1:] if number % 2 == 0 else whole})
    heard = time.monotonic()
    while proxy.written() == count:
        time.sleep(0.0005)
    return (time.monotonic() - begun) * 1000, (heard - begun) * 1000


def generation() -> int:
    """Return how often the kernel has taken rules of nftables."""
    for answer in nl.ask(_GET_GENERATION, 0, pack("=BBH", 0, 0, 0), protocol=nl.NETFILTER):
        (number,) = unpack("!I", nl.attributes(answer, 4)[_ID])
    return int(number)


def answered(address: str, patience: float) -> float | None:
    """Return when a service answers for the first time (monotonic seconds), unless it never does."""
    command = ["ip", "netns", "exec", "client", sys.executable, "-ISc", ANSWERED, address, "80"]
    try:
        return float(subprocess.run(command, capture_output=True, timeout=patience, check=True).stdout)
    except subprocess.TimeoutExpired:
        return None


def connections(*addresses: str, count: int = 2000) -> list[float]:
    """Return the median time of a new connection to each (us), and last how many were lost."""
    command = ["ip", "netns", "exec", "client", sys.executable, "-ISc", CONNECT, str(count), *addresses]
    said: list[float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return said


def spread(values: list[float]) -> str:
    """Return median and 95th percentile."""
    return f"{statistics.median(values):.0f} (p95 {sorted(values)[int(len(values) * 0.95)]:.0f})"


def kernel_memory() -> int:
    """Return what the kernel has that it cannot give back (KiB)."""
    text = Path("/proc/meminfo").read_text()
    names = ("SUnreclaim:", "VmallocUsed:", "Percpu:")
    return sum(int(text.partition(name)[2].split()[0]) for name in names)


if __name__ == "__main__":
    main()
