"""The services of the overlapped pair, and who asks them: as many connections as are wanted."""

from __future__ import annotations

from collections.abc import Iterator

from tests import cases

A_SECOND = 100  # connections to each of the even services: what a busy machine answers, too
PODS = {"a": ("A-2", "A-3", "A-4"), "b": ("B-1", "B-2")}
EVEN = {f"s{number}": "ab"[number % 2] for number in range(10)}  # the cluster of each
# How many endpoints they lead to on worker-01, which has one pod of each and three of four processors.
CHOSEN = {"near": 2, "home": 1, "here": 1}


def services() -> str:
    """Return the services as a scenario has them."""
    told = {
        **dict.fromkeys(EVEN, ""),
        "near": ", hints: auto",
        "home": ", hints: close",
        "here": ", policy: Local",
    }
    cluster = {**EVEN, "near": "a", "home": "b", "here": "a"}
    one = (
        f"{name}: {{cluster: {cluster[name]}, pods: [{', '.join(PODS[cluster[name]])}]{more}}}"
        for name, more in told.items()
    )
    return f"{{{', '.join(one)}}}"


def requests() -> Iterator[str]:
    """Yield who asks them, each from worker-01; in cluster b an endpoint that asks itself, too."""
    count = cases.count("CONCORDE_CONNECTIONS", 4_000, 100_000)
    duration = max(1, count // len(EVEN) // A_SECOND)
    for name, cluster in EVEN.items():
        yield _asking(name, name, cluster, rate=A_SECOND, duration=duration)
    for name, cluster in {"near": "a", "home": "b", "here": "a"}.items():
        yield _asking(name, name, cluster, rate=100, duration=1)
    yield _asking("by UDP", "s0", "a", rate=100, duration=1, protocol="udp")


def _asking(name: str, to: str, cluster: str, **fields: object) -> str:
    told = {"name": name, "from": f"{cluster.upper()}-1", "to": to, "connections": "new", **fields}
    return f"{{{', '.join(f'{key}: {value}' for key, value in told.items())}}}"
