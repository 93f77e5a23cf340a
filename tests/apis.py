"""A real API server of Kubernetes, on loopback unless told otherwise, with its etcd: nodes are objects."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML

from edge.http import AwayError, Json, Question, RefusedError, Server
from testbed.access.local import Local
from testbed.access.place import Node
from testbed.kubernetes.control_plane import ADMIN, Authority, Subject, api_server_arguments
from testbed.overlays.pod_network import etcd_arguments
from testbed.scenario.services import FIRST
from testbed.supplies import binaries, packages
from tests.paths import ROOT
from tests.ports import free_ports
from tests.waiting import until

KINDS = ROOT / "edge" / "deploy" / "addresses" / "kinds"
NODES = "/api/v1/nodes"
OURS = "/apis/addresses.contmec.dev/v1alpha1/clustercidrconfigs"


class Api:
    """An API server, started and ended as often as a test likes; what it keeps stays. Raises LookupError."""

    def __init__(self, directory: Path, *more: str, address: str = "127.0.0.1") -> None:
        self.directory = directory
        self.kubernetes = binaries.find()
        client, peer, self.port = free_ports(3)
        self.url = f"https://{address}:{self.port}"
        authority = Authority(cast(Node, Local()), str(directory), "api")
        serving = Subject("kube-apiserver", ["system:masters"], [address])
        self.identity, self.authority = directory / "kube-apiserver.pem", directory / "authority.crt"
        self.identity.write_text(authority.identify(serving))
        self.admin = directory / "admin.pem"
        self.admin.write_text(authority.identify(ADMIN))
        self.authority.write_text(authority.certificate)
        self._certify = authority
        etcd = etcd_arguments(f"{directory}/etcd", f"http://127.0.0.1:{client}", peer)
        self._etcd = self._start([str(packages.find("etcd-server", "etcd")), *etcd], "etcd")
        self._arguments = [
            str(self.kubernetes.path("kube-apiserver")),
            *api_server_arguments(str(directory), address, self.port, client, FIRST),
            f"--bind-address={address}",
            f"--cert-dir={directory}",
            *more,
        ]
        self._server: subprocess.Popen[bytes] | None = None
        # The namespaces are made, and kinds that are objects known, after the server answers.
        self._served = ["/api/v1/namespaces/kube-system", "/api/v1/namespaces/default"]
        self.client = Server(self.url, str(self.admin), str(self.authority), kept=16)

    def start(self, *more: str) -> None:
        """Start the server, this once with more options, and wait until it serves."""
        self._server = self._start([*self._arguments, *more], "kube-apiserver")
        until(self._serves, hint=lambda: (self.directory / "kube-apiserver.log").read_text()[-2000:])

    def stop(self) -> None:
        """End the server as a failure would."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None

    def runs(self) -> bool:
        """Whether the server was started, and not ended since."""
        return self._server is not None

    def freeze(self, frozen: bool) -> None:
        """Let the server be silent, or go on."""
        assert self._server is not None
        self._server.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)

    def close(self) -> None:
        """End all."""
        self.client.close()
        self.stop()
        self._etcd.kill()
        self._etcd.wait()

    def identify(self, subject: Subject) -> str:
        """Return the key and the certificate of somebody new."""
        return self._certify.identify(subject)

    def apply(self, path: Path) -> None:
        """Make the objects of a file that are kinds, and wait until they are served."""
        for kind in YAML(typ="safe").load_all(path):
            self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kind)
            spec = kind["spec"]
            version, plural = spec["versions"][0]["name"], spec["names"]["plural"]
            where = f"/apis/{spec['group']}/{version}/{plural}"
            until(partial(self.get, where))
            self._served.append(where)

    def get(self, path: str) -> Json | None:
        """Return what is there, if it is."""
        try:
            return self.client.ask(Question("GET", path))
        except RefusedError as error:
            if error.status != 404:
                raise
            return None

    def post(self, path: str, body: Json) -> Json:
        """Make an object."""
        return self.client.ask(Question("POST", path, body))

    def patch(self, path: str, body: Json) -> Json:
        """Change an object."""
        return self.client.ask(Question("PATCH", path, body, "application/merge-patch+json"))

    def delete(self, path: str) -> None:
        """Delete an object."""
        self.client.ask(Question("DELETE", path))

    def node(self, name: str, **labels: str) -> Json:
        """Make a Node."""
        return self.post(NODES, {"kind": "Node", "metadata": {"name": name, "labels": labels}})

    def blocks(self) -> dict[str, list[str]]:
        """Return what each node has."""
        found: dict[str, list[str]] = {}
        answer = self.get(NODES)
        assert answer is not None
        for node in answer["items"]:
            found[node["metadata"]["name"]] = node["spec"].get("podCIDRs", [])
        return found

    def blocks_of(self, node: str) -> list[str]:
        """Return what one node has; nothing if it is not there."""
        found = self.get(f"{NODES}/{node}")
        return found["spec"].get("podCIDRs", []) if found else []

    def config(self, name: str, ipv4: str = "", ipv6: str = "", **labels: str) -> Json:
        """Make a config of our kind; a range is written like 10.0.0.0/16:24."""
        return self.post(OURS, config(name, ipv4, ipv6, **labels))

    def _serves(self) -> bool:
        assert self._server is not None
        assert self._server.poll() is None, (self.directory / "kube-apiserver.log").read_text()[-2000:]
        with suppress(AwayError):
            return all(self.client.ask(Question("GET", path)) for path in self._served)
        return False

    def _start(self, argv: Sequence[str], name: str) -> subprocess.Popen[bytes]:
        with (self.directory / f"{name}.log").open("ab") as log:
            return subprocess.Popen(argv, stdout=log, stderr=log, cwd=self.directory)


def config(name: str, ipv4: str = "", ipv6: str = "", **labels: str) -> Json:
    """Return a config of our kind; a range is written like 10.0.0.0/16:24."""
    spec: dict[str, Any] = {}
    for family, text in (("ipv4", ipv4), ("ipv6", ipv6)):
        if text:
            cidr, _, mask = text.rpartition(":")
            spec[family] = {"cidr": cidr, "perNodeMaskSize": int(mask)}
    if labels:
        spec["nodeSelector"] = {"matchLabels": labels}
    return {
        "apiVersion": "addresses.contmec.dev/v1alpha1",
        "kind": "ClusterCIDRConfig",
        "metadata": {"name": name},
        "spec": spec,
    }


@contextmanager
def served(directory: Path, *more: str, kinds: bool = True, address: str = "127.0.0.1") -> Iterator[Api]:
    """Lend an API server that runs, with both kinds of config."""
    api = Api(directory, *more, address=address)
    try:
        api.start()
        if kinds:
            for path in sorted(KINDS.glob("*.yaml")):
                api.apply(path)
        yield api
    finally:
        api.close()


class Controller:
    """A program, started against an API."""

    def __init__(
        self,
        api: Api,
        *more: str,
        python: str = sys.executable,
        program: str = "addresses",
        inside: Sequence[str] = (),  # what leads into a namespace
    ) -> None:
        self.log = api.directory / f"{program}-{time.monotonic_ns()}.log"
        self.argv = [
            *inside, python, "-IS", str(ROOT / "edge"), program, f"--api={api.url}",
            f"--identity={api.admin}", f"--authority={api.authority}", *more,
        ]  # fmt: skip
        self.start()

    def start(self) -> None:
        """Start it, once more."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self.argv, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it without a word."""
        self._process.kill()
        self._process.wait()

    def end(self) -> int:
        """End it as whoever runs it does; return its status."""
        self._process.terminate()
        return self._process.wait()

    def freeze(self, frozen: bool) -> None:
        """Let it stand still, or go on."""
        self._process.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)

    def terms(self) -> int:
        """Return how often it has begun to lead."""
        return sum(line.endswith(" leads") and "no lease" not in line for line in self.said().splitlines())

    def said(self) -> str:
        """Return what it has said."""
        return self.log.read_text()


@contextmanager
def controlled(api: Api, *more: str, program: str = "addresses") -> Iterator[Controller]:
    """Lend a controller that runs."""
    controller = Controller(api, *more, program=program)
    try:
        yield controller
    finally:
        controller.kill()


def within(what: Callable[[], object], controller: Controller) -> float:
    """Wait until something is true; say what the controller said if it never is."""
    return until(what, hint=controller.said)
