"""Nodes of clusters that exist, entered by a privileged pod on each, in the namespace of the run.

Pods can stay up there. What they are is written there, beside them; on this machine only the kubeconfigs'
paths are known.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from testbed import resources
from testbed.access.local import ENVIRONMENT, Local
from testbed.access.place import CommandError, Entered, Node, Place, PodPlace, Route, in_parallel
from testbed.access.remote import Remote
from testbed.clusters import kubeconfigs, namespaces
from testbed.clusters.kubeconfigs import NAMESPACE, Access, Outside
from testbed.clusters.namespaces import READY_SECONDS, Namespaces, Record, lifetime
from testbed.clusters.survey import Ground, ask, needed, survey
from testbed.enforcements import registry as enforcements
from testbed.providers import Provider, persistence
from testbed.providers.persistence import (
    BringUp,
    CommandLine,
    Location,
    Persisted,
    Persistence,
    State,
    valid_name,
)
from testbed.scenario import Scenario, ScenarioError
from testbed.scenario.addressing import UPLINK, Addressing, Found
from testbed.supplies.images import TRAFFIC

IMAGE = "CONCORDE_BENCH_IMAGE"  # an environment variable: the pods' image there, if not the testbed's own

# From a helper into its node, whose programs are found as in the testbed's own nodes.
ENTRANCE = ("chroot", namespaces.NODE, "env", f"PATH={ENVIRONMENT['PATH']}")


@dataclass(frozen=True)
class ExistingNode(Remote):
    """A node, entered by ``kubectl exec`` into its helper, whose root directory is then the node's."""

    @property
    def cgroup(self) -> str:
        """Nothing is made there."""
        return ""


class HelpersProvider(Provider):
    """The nodes with pods or containers of a scenario. Transfers begin when they are told, by our clock.

    It has the namespace that everything of the run is in, and the ways into its pods.
    """

    def __init__(
        self,
        scenario: Scenario,
        ground: Ground,
        clients: Mapping[str, Outside],
        image: str,
        seconds: int | None = None,
    ) -> None:
        """``seconds`` is how long all pods last at most, if not for a run."""
        self._scenario = scenario
        self.seconds = lifetime(scenario) if seconds is None else seconds
        self.ground = ground
        self.clients = clients
        self.image = image
        self._namespaces = Namespaces(clients.values(), self.seconds)
        self.entered: dict[tuple[str, str], ExistingNode] = {}  # by cluster and node
        self.nodes: dict[str, Node] = {}

    def up(self) -> Found:
        """Make namespaces and helpers. Raises RuntimeError; LookupError while another run is under way."""
        self._namespaces.claim()
        in_parallel(self._help, self.clients)
        for (cluster, node), machine in self.ground.machines.items():
            client = self.clients[cluster]
            way = client.execution(namespaces.helper_name(node))
            self.entered[cluster, node] = ExistingNode(node, client.place, [*way, *ENTRANCE])
            self.nodes.setdefault(node, self.entered[cluster, node])
            assert machine.address, f"the API tells no address of {machine.name}"
        return self._found()

    def down(self) -> None:
        """Remove the namespaces that were made, with all that is in them."""
        self._namespaces.remove()

    def keep(self, name: str, state: str) -> None:
        """Let everything stay when this process ends, as a testbed of this name."""
        self._namespaces.keep(name, state)

    def way_into(self, name: str, client: Outside, pod: Mapping[str, Any]) -> tuple[Place, Sequence[str]]:
        """Return the way by the API; see Ways."""
        return client.place, client.execution(pod["metadata"]["name"])

    def _help(self, cluster: str) -> None:
        client = self.clients[cluster]
        machines = {node: m for (of, node), m in self.ground.machines.items() if of == cluster}
        helpers = [namespaces.helper_manifest(n, m, self.image, self.seconds) for n, m in machines.items()]
        if machines:
            client.apply(helpers)
            client.wait_until_ready([namespaces.helper_name(node) for node in machines], READY_SECONDS)

    def _found(self) -> Found:
        """Return the names and uplinks that the nodes really have."""
        names = list(needed(self._scenario))
        return Found(
            uplinks=dict(zip(names, in_parallel(self._uplink, names), strict=True)),
            names={name: self.ground.machine(name)[1].name for name in names},
        )

    def _uplink(self, name: str) -> str:
        """Return the device by which a node reaches another one, or its default route's."""
        others = [m.address for (_, node), m in self.ground.machines.items() if node != name]
        asked = ["get", others[0]] if others else ["show", "default"]
        routes: list[dict[str, Any]] = self.nodes[name].run(["ip", "-j", "route", *asked]).json()
        return routes[0]["dev"] if routes else UPLINK


def on_clusters(addressing: Addressing, given: str, seconds: int | None = None) -> HelpersProvider:
    """Look at the clusters that kubeconfigs lead to, and return a provider of their nodes.

    ``seconds`` is how long pods last there at most, if not for a run.

    Raises LookupError for kubeconfigs, ScenarioError for all that speaks against a testbed there.
    """
    scenario = addressing.scenario
    clients = kubeconfigs.clients(scenario, given)
    answers = {name: ask(client) for name, client in clients.items()}
    ground, faults = survey(scenario, enforcements.of(addressing), answers)
    if faults:
        raise ScenarioError(f"scenario {scenario.name}", faults)
    return HelpersProvider(scenario, ground, clients, os.environ.get(IMAGE, TRAFFIC), seconds)


LIFETIME_SECONDS = 24 * 3600  # of pods that nobody takes down
# What nodes have may be without bash.
SHELL = ["sh", "-c", "command -v bash >/dev/null && exec bash; exec sh"]


class PodsPersistence(Persistence):
    """Keeps pods in clusters that exist."""

    def up(
        self, scenario: Scenario, source: str, name: str, bring_up: BringUp, _progress: Callable[[str], None]
    ) -> PersistedPods:
        """Bring up pods that end by themselves after a day, unless they are taken down before."""
        if self.find(name):
            raise persistence.taken(name)
        provider = on_clusters(Addressing(scenario), source, LIFETIME_SECONDS)
        with bring_up(provider) as state:
            remember(name, {client.cluster: str(client.access) for client in provider.clients.values()})
            provider.keep(name, _portable(state, provider).model_dump_json())
        return PersistedPods(name, provider.clients)

    def names(self) -> list[str]:
        """Return of which testbeds this machine knows the clusters."""
        return names()

    def find(self, name: str) -> PersistedPods | None:
        """Return a testbed if its clusters have it, or cannot be asked."""
        paths = remembered(name) if valid_name(name) else None
        if paths is None:
            return None
        clients = _clients(paths)
        found = PersistedPods(name, clients)
        try:
            there = found.there
        except CommandError:
            return found  # nobody knows, and whoever wants more of it is told why
        mine = [of for of, one in there.items() if (one.name, one.owner) == (name, namespaces.user())]
        if not mine:
            forget(name)
            return None
        return PersistedPods(name, {cluster: clients[cluster] for cluster in mine})

    def at(self, source: str, _scenario: Scenario | None, name: str | None) -> PersistedPods | None:
        """Return what clusters have to which kubeconfigs lead, whoever brought it up; or what has a name."""
        if not source:
            return self.find(name or persistence.DEFAULT)
        paths = [_without_cluster(word) for word in kubeconfigs.separated(source)]
        asked = PersistedPods("", _clients(dict(zip(paths, paths, strict=True)))).there
        if not asked:
            return None
        # It is the clusters that know which of them is which.
        called = next(iter(asked.values())).name
        return PersistedPods(called, _clients({one.cluster: path for path, one in asked.items()}))


class PersistedPods(Persisted):
    """Pods that stay up in clusters that exist."""

    def __init__(self, name: str, clients: Mapping[str, Outside]) -> None:
        """``clients`` are by cluster."""
        self.name, self.clients = name, clients

    @cached_property
    def there(self) -> Mapping[str, Record]:
        """What the clusters have, by their names. Raises CommandError if one cannot be asked."""
        found = dict(zip(self.clients, in_parallel(namespaces.persisted, self.clients.values()), strict=True))
        return {cluster: one for cluster, one in found.items() if one}

    def state(self) -> State:
        """Return what was written into the clusters."""
        try:
            there = list(self.there.values())
        except CommandError as error:
            raise RuntimeError(
                f"testbed {self.name!r}: {error}; if its cluster is gone for good, remove {file(self.name)}"
            ) from None
        if not there:
            raise RuntimeError(f"testbed {self.name!r} is gone")
        one = there[0]
        note = f"its pods are in namespace {NAMESPACE}, and end by themselves at {one.until}"
        return State.model_validate_json(one.state).model_copy(update={"notes": [note]})

    def command(self, route: Route, argv: Sequence[str]) -> CommandLine:
        """Return what leads into a pod, and from there on, by kubectl."""
        execute, *rest = route.command
        terminal = ["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else []
        return CommandLine(self.clients[route.node].command(execute, *terminal, *rest, *argv))

    def place(self, name: str, route: Route, address: str) -> PodPlace:
        """Return what kubectl leads to from this machine."""
        return Entered(name, Local(), tuple(self.clients[route.node].command(*route.command)), address)

    def login(self, location: Location, argv: Sequence[str]) -> CommandLine:
        """Return what leads to a shell by kubectl: nobody has to log in."""
        return self.command(location.entry, argv or SHELL)

    def kubeconfig(self, cluster: str) -> str:
        """Return the kubeconfig that was given, or of several contexts in it the one that was named."""
        if cluster not in self.clients:
            raise persistence.unknown_cluster(self.name, cluster, list(self.clients))
        client = self.clients[cluster]
        if client.context:
            return client.run("config", "view", "--raw", "--minify", "--flatten").stdout
        return Path(client.kubeconfig).read_text(encoding="utf-8")

    def down(self) -> str:
        """Remove the namespaces, with all that is in them."""
        self.state()  # which says what to do where that cannot be told
        in_parallel(namespaces.remove, [self.clients[cluster] for cluster in self.there])
        forget(self.name)
        return f"testbed {self.name!r} is down"


def _clients(paths: Mapping[str, str]) -> dict[str, Outside]:
    program = kubeconfigs.kubectl()
    return {cluster: Outside.by(Access.of(path), cluster, program) for cluster, path in paths.items()}


def _without_cluster(word: str) -> str:
    """Return a kubeconfig's file and context without the cluster it is given for."""
    _, equals, rest = word.partition("=")
    return rest if equals and not Access.of(word).file.is_file() else word


def _portable(state: State, provider: HelpersProvider) -> State:
    """Return a state whose ways begin at a cluster, and not at this machine's kubectl and kubeconfig."""

    def begins(route: Route) -> Route:
        for cluster, client in provider.clients.items():
            ours = tuple(client.command())
            if route.command[: len(ours)] == ours:
                return Route(node=cluster, command=route.command[len(ours) :])
        raise AssertionError(f"no cluster's kubectl: {route.command}")

    places = {}
    for name, where in state.places.items():
        # A scenario's own addresses are those of nodes that a testbed makes.
        address = provider.ground.machine(name)[1].address if where.kind == "node" else where.address
        ways = {"entry": begins(where.entry), "network": begins(where.network)}
        places[name] = where.model_copy(update={**ways, "address": address})
    return state.model_copy(update={"places": places, "clusters": {}})


# Which clusters to ask for testbeds that stay up there: a file for each, with its kubeconfigs' paths. What
# such a testbed holds is in its clusters. A file here that leads to clusters without it is worth nothing.


def directory() -> Path:
    """Return where the files are: they outlive a restart of this machine, and no cache is cleared of them."""
    return resources.of_user("XDG_STATE_HOME", ".local/state") / "clusters"


def file(name: str) -> Path:
    """Return a testbed's file."""
    return directory() / f"{name}.json"


def names() -> list[str]:
    """Return of which testbeds there are files."""
    return sorted(found.stem for found in directory().glob("*.json"))


def remembered(name: str) -> dict[str, str] | None:
    """Return the paths of a testbed's kubeconfigs by cluster; None if nothing is known of it."""
    try:
        found: dict[str, str] = json.loads(file(name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found


def remember(name: str, paths: Mapping[str, str]) -> None:
    """Write a testbed's file, all at once."""
    directory().mkdir(parents=True, exist_ok=True)
    unfinished = file(name).with_suffix(".unfinished")
    unfinished.write_text(json.dumps(dict(paths)), encoding="utf-8")
    unfinished.replace(file(name))


def forget(name: str) -> None:
    """Remove a testbed's file, if there is one."""
    file(name).unlink(missing_ok=True)
