"""Who gives a cluster's nodes their blocks, where they differ in size: edge's controller, beside the master.

It is told the scenario's ``pod_cidrs`` as ClusterCIDRConfigs, and may do at the API what it may in any
cluster. Nodes come after it, in the scenario's order, so that the live ones get what the scenario says.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

from edge.addresses import kinds
from testbed import resources
from testbed.access.components import Component, ComponentError
from testbed.kubernetes.client import Client
from testbed.kubernetes.control_plane import ControlPlane, Subject
from testbed.kubernetes.manifests import Manifest, name_of
from testbed.scenario import Scenario, block_rules, blocks, reading
from testbed.scenario.addressing import Addressing
from testbed.scenario.faults import Fault

DEPLOY = resources.EDGE / "deploy" / "addresses"
# All but the Deployment: the program is started here.
RIGHTS = ("10-namespace", "20-account", "21-cluster-role", "22-cluster-binding", "23-role", "24-binding")
# What they name: the namespace, and in it the account and the lease, which are both called so.
NAMESPACE, NAME = "concorde-addresses", "addresses"
WEBHOOK, WEBHOOK_PORT = DEPLOY / "manifests" / "40-webhook.yaml", 10270
KIND = f"{kinds.PLURAL}.{kinds.OURS.partition('/')[0]}"
SECONDS = 60
# Prints the blocks of nodes, by their names, as soon as all that are asked for have one: the names, as JSON,
# and the command line of a kubectl that watches are its arguments.
WATCH = """
import json, subprocess, sys
wanted, found = set(json.loads(sys.argv[1])), {}
with subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, text=True) as watch:
    while not wanted <= found.keys():
        line = watch.stdout.readline()
        if not line:
            break
        name, _, block = line.strip().partition(" ")
        if block:
            found[name] = block
    watch.kill()
print(json.dumps(found))
"""


class Giver:
    """One cluster's controller."""

    def __init__(self, addressing: Addressing, control_plane: ControlPlane, client: Client) -> None:
        self._addressing, self._client = addressing, client
        self._control_plane = control_plane
        self._cluster = control_plane.cluster
        directory = control_plane.directory
        self._identity = f"{directory}/addresses.pem"
        self._webhook_port = WEBHOOK_PORT + addressing.position(self._cluster)
        self.component = Component(
            f"address controller of cluster {self._cluster}",
            control_plane.master,
            f"{directory}/addresses",
            [
                *("/usr/bin/python3", "-IS", str(resources.EDGE), "addresses"),
                *("--api", control_plane.server, "--identity", self._identity),
                *("--authority", f"{directory}/authority.crt", "--lease", f"{NAMESPACE}/{NAME}"),
                *("--webhook", NAMESPACE, "--webhook-port", str(self._webhook_port)),
                *told(addressing, self._cluster),
            ],
        )

    def up(self) -> None:
        """Make kinds and configs, start it, and wait until it knows them. Raises CommandError."""
        client, plane = self._client, self._control_plane
        files = [*(DEPLOY / "manifests" / f"{name}.yaml" for name in RIGHTS), DEPLOY / "kinds"]
        client.run("apply", "--validate=false", *(f"--filename={file}" for file in files))
        client.run("wait", "--for=condition=Established", f"--timeout={SECONDS}s", f"crd/{KIND}")
        entries = self._addressing.scenario.clusters[self._cluster].pod_cidrs or ()
        client.apply([*(blocks.manifest(entry) for entry in entries), self._webhook()])
        account = Subject(f"system:serviceaccount:{NAMESPACE}:{NAME}")
        plane.master.run(["tee", self._identity], stdin=plane.authority.identify(account))
        self.component.start()
        client.run("wait", "--for=condition=Ready", f"--timeout={SECONDS}s", KIND, "--all")

    def _webhook(self) -> Manifest:
        """Return by which the API server asks the controller, which is no pod here and has no Service."""
        manifest: Manifest = reading.parse(WEBHOOK.read_text(encoding="utf-8"))
        (webhook,) = manifest["webhooks"]
        url = f"https://{self._control_plane.address}:{self._webhook_port}/validate"
        return {**manifest, "webhooks": [{**webhook, "clientConfig": {"url": url}}]}

    def await_blocks(self, nodes: Collection[str], addressing: Addressing) -> None:
        """Wait until each of these nodes has its block.

        Raises ComponentError for other ones than the scenario's, CommandError if it takes too long.
        """
        if not nodes:
            return
        columns = '{.metadata.name} {.spec.podCIDR}{"\\n"}'
        watch = self._client.command("get", "nodes", "--watch", f"--output=jsonpath={columns}")
        names = {name_of(name): name for name in nodes}
        argv = ["/usr/bin/python3", "-IS", "-c", WATCH, json.dumps(list(names)), *watch]
        shown = self._client.place.run(argv, timeout=SECONDS).json()
        for own, name in names.items():
            found, wanted = shown.get(own), str(addressing.pod_subnet(self._cluster, name))
            if found != wanted:
                was = f"{name} of cluster {self._cluster} has {found}, not the scenario's {wanted}"
                raise ComponentError(f"{was}: {self.component.last_words()}")


def told(addressing: Addressing, cluster: str) -> list[str]:
    """Return what a controller is told of its cluster's networks, so that it keeps the rules of a scenario.

    They are for configs that somebody makes later: the scenario's own keep them.
    """
    others = [network for _, network in block_rules.beside(addressing.scenario, cluster)]
    reserved = [f"--reserved={one}" for one in (addressing.service_range(cluster), *others)]
    return [*reserved, "--island"] if addressing.network(cluster).overhead else reserved


def in_turn(names: Sequence[str]) -> list[list[str]]:
    """Return nodes in groups whose members may come together; the next come when these have their blocks.

    A controller that was away meanwhile lists them, and takes those of one second by name: so in a group the
    names are in their order, too.
    """
    groups: list[list[str]] = []
    for name in names:
        if groups and name_of(groups[-1][-1]) < name_of(name):
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def of_two_families(scenario: Scenario) -> Iterable[Fault]:
    """Yield ranges of two families: of a node's blocks an API server of 1.20 keeps one, without a word."""
    for name, cluster in scenario.clusters.items():
        for index, entry in enumerate(cluster.pod_cidrs or ()):
            if entry.ipv6 is not None:
                words = "the API servers here keep one family, without the gate IPv6DualStack: remove this"
                yield Fault(("clusters", name, "pod_cidrs", index, "ipv6"), words)


def without_block(node: Manifest) -> Manifest:
    """Return a node as it comes to an API where its block is given to it."""
    kept = {key: value for key, value in node["spec"].items() if not key.startswith("podCIDR")}
    return {**node, "spec": kept}
