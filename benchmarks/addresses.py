"""How fast nodes get blocks on a real API server: ours, beside kube-controller-manager's own allocator.

Nodes are objects without machines. They are there before an allocator starts; what is measured is the time
from the first block that a watch shows to the last. Then how long a new node waits after a restart with many
nodes that have theirs: after an end by SIGTERM, and one by SIGKILL, whose lease is waited for.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from edge.http import AwayError, Question  # noqa: E402
from testbed.kubernetes.control_plane import render_kubeconfig  # noqa: E402
from tests.apis import NODES, Api, controlled, served, within  # noqa: E402
from tests.unit.edge.addresses.test_many_nodes import CONFIGS, listed  # noqa: E402

RANGE, MASK = "10.64.0.0/10", 24
LIFTED = ("--kube-api-qps=100000", "--kube-api-burst=100000")


class Seen:
    """When a watch showed nodes' blocks; it is there before anybody gives any."""

    def __init__(self, api: Api, count: int) -> None:
        self.times: list[float] = []
        self.full = threading.Event()
        answer = api.get(f"{NODES}?limit=1")
        assert answer is not None
        self._path = f"{NODES}?watch=1&resourceVersion={answer['metadata']['resourceVersion']}"
        self._api, self._count = api, count
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def seconds(self) -> float:
        """From the first block to the last."""
        return self.times[-1] - self.times[0]

    def _watch(self) -> None:
        given: set[str] = set()
        try:
            for event in self._api.client.listen(Question("GET", self._path), silence=300):
                node = event["object"]
                if node["spec"].get("podCIDR") and node["metadata"]["name"] not in given:
                    given.add(node["metadata"]["name"])
                    self.times.append(time.monotonic())
                if len(given) == self._count:
                    self.full.set()
                    return
        except AwayError:
            return  # the API is ended


def make_nodes(api: Api, count: int) -> None:
    """Make so many nodes, and none else."""
    api.delete(NODES)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: api.node(f"node-{number:05}"), range(count)))


@contextmanager
def kubernetes_own(api: Api, options: Sequence[str]) -> Iterator[None]:
    """Run kube-controller-manager's allocator, and nothing else of it."""
    kubeconfig = api.directory / "manager.conf"
    identity, authority = api.admin.read_text(), api.authority.read_text()
    kubeconfig.write_text(render_kubeconfig("api", api.url, authority, identity))
    arguments = [
        str(api.kubernetes.path("kube-controller-manager")), f"--kubeconfig={kubeconfig}",
        "--leader-elect=false", "--secure-port=0", "--port=0",
        "--controllers=nodeipam", "--allocate-node-cidrs=true",
        f"--cluster-cidr={RANGE}", f"--node-cidr-mask-size={MASK}", *options,
    ]  # fmt: skip
    with (api.directory / "manager.log").open("ab") as log:
        process = subprocess.Popen(arguments, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def of_kubernetes(api: Api, count: int, options: Sequence[str]) -> float:
    """Return how long kube-controller-manager takes (seconds)."""
    make_nodes(api, count)
    seen = Seen(api, count)
    with kubernetes_own(api, options):
        assert seen.full.wait(600), f"{len(seen.times)} of {count} have a block"
    return seen.seconds


def of_ours(api: Api, count: int) -> float:
    """Return how long our controller takes (seconds)."""
    make_nodes(api, count)
    seen = Seen(api, count)
    with controlled(api) as controller:
        assert seen.full.wait(600), controller.said()
        controller.end()
    return seen.seconds


def after_restart(api: Api, count: int) -> tuple[float, float]:
    """Return how long a new node waits after an end by SIGTERM, and by SIGKILL (seconds from the start)."""
    make_nodes(api, count)
    seen = Seen(api, count)
    with controlled(api) as controller:
        assert seen.full.wait(600), controller.said()
        waited = []
        for number, end in enumerate((controller.end, controller.kill)):
            end()
            name = f"new-{number}"
            api.node(name)
            begun = time.monotonic()
            controller.start()
            within(lambda: any(api.blocks_of(name)), controller)  # noqa: B023 (it is waited for here)
            waited.append(time.monotonic() - begun)
        controller.end()
    return waited[0], waited[1]


def in_memory(count: int) -> Iterator[str]:
    """Yield how long it takes to give so many nodes their blocks without an API, a line for some configs."""
    for name, configs in CONFIGS.items():
        begun = time.monotonic()
        listed(configs, count)
        yield f"{count} nodes in memory, {name}: {time.monotonic() - begun:.2f} s"


def main() -> None:
    """Measure, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--known", type=int, default=5000)
    parser.add_argument("--in-memory", type=int, default=100_000)
    told = parser.parse_args()
    for line in in_memory(told.in_memory):
        print(line, flush=True)
    with tempfile.TemporaryDirectory() as directory, served(Path(directory)) as api:
        api.config("all", f"{RANGE}:{MASK}")
        runs: dict[str, Callable[[], float]] = {
            "ours": partial(of_ours, api, told.nodes),
            "kube-controller-manager, default limit": partial(of_kubernetes, api, told.nodes, ()),
            "kube-controller-manager, no limit": partial(of_kubernetes, api, told.nodes, LIFTED),
            "ours, once more": partial(of_ours, api, told.nodes),
            "kube-controller-manager, no limit, once more": partial(of_kubernetes, api, told.nodes, LIFTED),
        }
        for who, measure in runs.items():
            print(f"{told.nodes} nodes, first to last block, {who}: {measure():.2f} s", flush=True)
        ended, killed = after_restart(api, told.known)
        print(f"{told.known} known nodes, from start to a new block: {ended:.2f} s; killed: {killed:.2f} s")


if __name__ == "__main__":
    main()
