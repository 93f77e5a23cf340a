"""How fast a node's proxy is with many services, on a real API server: its first rules, and one change.

All is in a network namespace of its own: etcd, the API server, the proxy, and two pods. Services and their
slices are objects; the endpoints of the first and the last are addresses of one of the pods. Reported are the
time from the proxy's start until the rules are there, from a slice's change until the kernel has it, and how
long a new connection takes to the first service, to the last, and past all services to an endpoint itself.
Connections to the last service go on while its endpoints change: any that fails is counted.
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
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from edge.http import Json  # noqa: E402
from tests.apis import Api, served  # noqa: E402

SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1beta1/namespaces/default/endpointslices"
RANGE, PODS = "10.96.0.0/16", "10.61.0.0/24"
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
# Connects by turns; the median of each, in microseconds, and how many failed.
CONNECT = """
import json, socket, sys, time
taken, failed = [[] for _ in sys.argv[2:]], 0
for _ in range(int(sys.argv[1])):
    for address, times in zip(sys.argv[2:], taken):
        host, port = address.split(":")
        begun = time.perf_counter()
        try:
            with socket.create_connection((host, int(port)), timeout=2) as connection:
                times.append((time.perf_counter() - begun) * 1e6)
                connection.recv(1)
        except OSError:
            failed += 1
print(json.dumps([sorted(times)[len(times) // 2] for times in taken] + [failed]))
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--services", type=int, default=1000, help="how many (%(default)s)")
    parser.add_argument("--endpoints", type=int, default=10, help="of each (%(default)s)")
    parser.add_argument("--changes", type=int, default=30, help="of one endpoint (%(default)s)")
    told = parser.parse_args()
    if "BENCH_APART" not in os.environ:
        apart = [
            "unshare",
            *(["-r"] if os.geteuid() else []),
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
        ]
        command = [*apart, "--kill-child", sys.executable, *sys.argv]
        sys.exit(subprocess.run(command, env={**os.environ, "BENCH_APART": "1"}, check=False).returncode)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    subprocess.run(["sh", "-ec", LINKS], check=True)
    with tempfile.TemporaryDirectory() as directory, served(Path(directory), kinds=False) as api:
        begun = time.monotonic()
        addresses = make(api, told.services, told.endpoints)
        took = time.monotonic() - begun
        print(f"{told.services} services of {told.endpoints} endpoints, made in {took:.0f} s")
        measure(api, addresses, told.endpoints, told.changes)


def measure(api: Api, addresses: list[str], endpoints: int, changes: int) -> None:
    """Start a proxy and measure what it does."""
    server = subprocess.Popen(["ip", "netns", "exec", "server", sys.executable, "-ISc", SERVE])
    direct = connections("10.62.0.0:8080")[0]
    before = slab()
    log = api.directory / "proxy.log"
    command = [
        sys.executable, "-IS", str(ROOT / "edge"), "services-proxy", "--cluster=bench", f"--services={RANGE}",
        f"--pods={PODS}", "--node=bench", "--zone=a", f"--api={api.url}", f"--identity={api.admin}",
        f"--authority={api.authority}",
    ]  # fmt: skip
    api.node("bench")
    begun = time.monotonic()
    with log.open("w") as file:
        proxy = subprocess.Popen(command, stderr=file)
    first, wrote = wait_for(log, 1)
    print(f"first rules {first - begun:.2f} s after the start, {wrote} ms of them to write")
    changed = []
    for number in range(changes):
        time.sleep(0.1)  # each is a change by itself, and not gathered with others
        changed.append(one_change(api, log, len(addresses) - 1, endpoints, number))
    seen, written = ([one[at] for one in changed] for at in (0, 1))
    print(f"one endpoint's change: {spread(seen)} ms until the kernel has it, {spread(written)} ms to write")
    past, to_first, to_last, failed = connections(
        "10.62.0.0:8080", f"{addresses[0]}:80", f"{addresses[-1]}:80"
    )
    print(f"new connection, us (median): {direct:.1f} without rules, {past:.1f} past services, "
          f"{to_first:.1f} to the first, {to_last:.1f} to the last ({to_last / to_first:.3f} x); "
          f"{failed:.0f} failed")  # fmt: skip
    with ThreadPoolExecutor(1) as pool:
        going_on = pool.submit(connections, f"{addresses[-1]}:80")
        while not going_on.done():
            one_change(api, log, len(addresses) - 1, endpoints, changes)
            changes += 1
    print(f"while endpoints change: {going_on.result()[-1]:.0f} connections failed")
    status = Path(f"/proc/{proxy.pid}/status").read_text()
    most = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(f"memory: the proxy {most:.0f} MiB at most, the kernel {(slab() - before) / 1024:.0f} MiB more")
    proxy.kill()
    begun = time.monotonic()
    with log.open("w") as file:
        proxy = subprocess.Popen(command, stderr=file)
    again, _ = wait_for(log, 1)
    print(f"after a SIGKILL: {again - begun:.2f} s until all is looked at")
    for process in (proxy, server):
        process.kill()


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


def one_change(api: Api, log: Path, last: int, endpoints: int, number: int) -> tuple[float, float]:
    """Take an endpoint from the last service, or give it back; how long all took, and to write (ms)."""
    count = lines(log)
    whole: Any = sliced(last, last + 1, endpoints)["endpoints"]
    begun = time.monotonic()
    api.patch(f"{SLICES}/s{last}", {"endpoints": whole[1:] if number % 2 == 0 else whole})
    done, wrote = wait_for(log, count + 1)
    return (done - begun) * 1000, wrote


def lines(log: Path) -> int:
    """Return how often a proxy has written rules."""
    return log.read_text().count("ports of services")


def wait_for(log: Path, count: int) -> tuple[float, int]:
    """Wait until a proxy has written rules so often; return when that was, and how long it took (ms)."""
    while lines(log) < count:
        time.sleep(0.0005)
    now = time.monotonic()
    last = [line for line in log.read_text().splitlines() if "ports of services" in line][-1]
    return now, int(last.split()[-2])


def connections(*addresses: str, count: int = 2000) -> list[float]:
    """Return the median time of a new connection to each (us), and last how many failed."""
    command = ["ip", "netns", "exec", "client", sys.executable, "-ISc", CONNECT, str(count), *addresses]
    said: list[float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return said


def spread(values: list[float]) -> str:
    """Return median and 95th percentile."""
    return f"{statistics.median(values):.0f} (p95 {sorted(values)[int(len(values) * 0.95)]:.0f})"


def slab() -> int:
    """Return what the kernel has that it cannot give back (KiB)."""
    return int(Path("/proc/meminfo").read_text().partition("SUnreclaim:")[2].split()[0])


if __name__ == "__main__":
    main()
