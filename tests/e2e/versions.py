"""Another version of the plugin comes and goes on a cluster whose pods have traffic."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from testbed.clusters.kubeconfigs import Outside
from testbed.kubernetes.worker import Cell
from testbed.supplies import images, installer
from testbed.supplies.images import Image
from tests import installation
from tests.e2e.conftest import PATIENCE_SECONDS, until

VERSION = "9.9.9"
NAMESPACE = "versions"
PROMISE = 20e6  # bits per second
# A hundred small datagrams a second: each shows a hundredth of it, and a socket keeps seconds of them where
# processors are short, so that none is lost but on the network.
DATAGRAMS = ("--udp", "--length", "200", "--bitrate", "160K")
LOST_OF_ALL = re.compile(r" (\d+)/(\d+) \(\S+%\)")  # as iperf3 says it of a second
SECONDS = 4 * PATIENCE_SECONDS  # more than all that is waited for; the sender ends with the test


def image(directory: Path) -> Image:
    """The installer's image with another version of the plugin."""
    built = installation.build(directory, VERSION, other_kernel=True)
    return images.assemble(f"{installer.IMAGE.rpartition(':')[0]}:{VERSION}", installer.files(built.parent))


def pod(name: str, node: str) -> dict[str, Any]:
    annotations = {"concorde.contmec.dev/egress-guarantee": f"{PROMISE:.0f}"}
    container = {"name": "traffic", "image": images.TRAFFIC, "imagePullPolicy": "IfNotPresent"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations},
        "spec": {
            "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 1,
        },
    }


@contextmanager
def sending(client: Outside, to: str) -> Iterator[list[tuple[int, int]]]:
    """Let the first pod send to the second; then the list has the datagrams lost in each second, and all."""
    serve = client.command("exec", "second", "--", "iperf3", "--server", "--one-off", "--forceflush")
    send = client.command("exec", "first", "--", "iperf3", "--client", to, "--time", f"{SECONDS:.0f}")
    found: list[tuple[int, int]] = []
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        while "Server listening" not in server.stdout.readline():
            assert server.poll() is None
        with subprocess.Popen([*send, *DATAGRAMS], stdout=subprocess.DEVNULL) as sender:
            counts = map(LOST_OF_ALL.search, server.stdout)
            seconds = ((int(each[1]), int(each[2])) for each in counts if each)
            next(seconds)
            begin = time.monotonic()
            yield found
            found += [next(seconds) for _ in range(int(time.monotonic() - begin) + 1)]
            sender.terminate()
        server.terminate()  # both programs end with their pods


def come_and_go(client: Outside, cells: Sequence[Cell], program: str, started: Callable[[], bool]) -> None:
    """Bring a version and take it back by what an administrator types; look at all that is sent meanwhile.

    `program` is the plugin on the nodes; `started` says whether the installer has done its task on each.
    """
    client.run("create", "namespace", NAMESPACE)
    pods = replace(client, namespace=NAMESPACE)
    wanted = [pod("first", cells[0].name), pod("second", cells[1].name)]
    pods.apply(wanted)
    pods.wait_until_ready(["first", "second"], PATIENCE_SECONDS)
    address = pods.get("pod/second")["status"]["podIP"]
    (former,) = {cell.run([program, "--version"]).stdout for cell in cells}
    image = f"concorde={installer.IMAGE.rpartition(':')[0]}:{VERSION}"
    with sending(pods, address) as found:
        for change, version in (
            (("set", "image", "daemonset/concorde", image), f"concorde {VERSION}\n"),
            (("rollout", "undo", "daemonset/concorde"), former),
        ):
            client.run(*change, "--namespace=concorde")
            until(partial(has_version, cells, program, version), PATIENCE_SECONDS)
            until(started, PATIENCE_SECONDS)
            for cell in cells:
                assert cell.run([program, "reconcile"]).stdout == "nothing to repair\n"
    assert sum(count for _, count in found) > 300
    assert sum(lost for lost, _ in found) == 0, found
    pods.apply([pod("third", cells[0].name)])  # the version that is back attaches pods, too
    pods.wait_until_ready(["third"], PATIENCE_SECONDS)
    client.run("delete", "namespace", NAMESPACE, "--wait=false")


def has_version(cells: Sequence[Cell], program: str, version: str) -> bool:
    """Whether that is what runtimes call."""
    return all(cell.run([program, "--version"]).stdout == version for cell in cells)
