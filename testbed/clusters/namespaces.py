"""The namespace of a run in each cluster that exists: claimed, and removed with all that is made in it.

That is pods, which end by themselves at last.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from testbed.access.place import RUN_SECONDS, CommandError, Node, Place, in_parallel
from testbed.clusters.kubeconfigs import NAMESPACE, Outside
from testbed.clusters.survey import Machine
from testbed.enforcements.enforcement import Enforcement
from testbed.kubernetes import manifests
from testbed.kubernetes.client import PodError
from testbed.kubernetes.manifests import Manifest, name_of
from testbed.scenario import Scenario

READY_SECONDS = 900.0
REMOVAL_SECONDS = 900
ANSWER_SECONDS = 20  # of an API that is there, but busy
# What a run takes besides its traffic at most: getting up and calibrating, which was 20 minutes on emulated
# machines of a slow host.
AROUND_SECONDS = 3600

LABEL = {"concorde.contmec.dev/made-by": "bench"}
OWNER, UNTIL = "concorde.contmec.dev/owner", "concorde.contmec.dev/until"  # annotations of the namespace
TESTBED = "concorde.contmec.dev/testbed"  # another: its name, if it stays up
ACCOUNT = "bench"
STATE = "testbed"  # the ConfigMap that says what stays up
NODE = "/node"  # where a helper sees the node's root directory


@dataclass(frozen=True)
class Record:
    """What one cluster says of a testbed that stays up there."""

    name: str
    cluster: str  # what the scenario calls this one
    owner: str
    until: str
    state: str  # see testbed.providers.persistence.State


class Ways(Protocol):
    """How the harness gets to what it makes in clusters."""

    @property
    def seconds(self) -> int:
        """How long pods last at most."""

    @property
    def entered(self) -> Mapping[tuple[str, str], Node]:
        """The way into each node, by cluster and node: to what that cluster's runtime has there."""

    def way_into(self, name: str, client: Outside, pod: Mapping[str, Any]) -> tuple[Place, Sequence[str]]:
        """Return where to run what leads into a pod of the scenario, and its command line.

        ``pod`` is what the API says of it.
        """


class Namespaces:
    """One namespace in each cluster, in which everything of a run is; its end is the end of all."""

    def __init__(self, clients: Iterable[Outside], seconds: int) -> None:
        self._clients = list(clients)
        self._seconds = seconds
        self._claimed: list[Outside] = []
        self._until = ""

    def claim(self) -> None:
        """Make them. Raises RuntimeError; LookupError while another run is under way."""
        for client in self._clients:
            remove_leftovers(client)
        for client in self._clients:
            self._claim(client)
        in_parallel(lambda client: client.apply([_object("ServiceAccount", ACCOUNT)]), self._clients)

    def keep(self, name: str, state: str) -> None:
        """Let them stay when this process ends, as a testbed of this name; ``state`` is for ``persisted``."""
        for client in self._claimed:
            says = Record(name, client.cluster, user(), self._until, state)
            client.apply([_object("ConfigMap", STATE) | {"data": asdict(says)}])
        # Now they are nobody's leftovers any more: without a process only time tells.
        changes = [f"{OWNER}={user()}", f"{TESTBED}={name}"]
        in_parallel(
            lambda one: one.run("annotate", "--overwrite", "namespace", NAMESPACE, *changes), self._claimed
        )

    def remove(self) -> None:
        """Remove those that were made, with all that is in them."""
        claimed, self._claimed = self._claimed, []
        with suppress(CommandError):
            in_parallel(remove, claimed)

    def _claim(self, client: Outside) -> None:
        """Make the namespace of a cluster. One that has just become somebody else's must not be removed."""
        mine = owner(self._seconds)
        self._until = mine[UNTIL]
        try:
            client.run("create", "--filename=-", stdin=json.dumps(namespace_manifest(mine)))
        except CommandError:
            # An API that was late, and was asked again, may have made it the first time.
            there = client.find("namespace", NAMESPACE).get("metadata", {}).get("annotations", {})
            if not mine.items() <= there.items():
                raise
        except BaseException:  # interrupted: it may be there
            self._claimed.append(client)
            raise
        self._claimed.append(client)


def lifetime(scenario: Scenario) -> int:
    """Return how long a run of a scenario takes at the very most, seconds."""
    return AROUND_SECONDS + round(scenario.measurement.repetitions * (2 * scenario.duration + 30))


def owner(seconds: int) -> dict[str, str]:
    """Return what the namespace says of whoever makes it now."""
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    return {
        OWNER: f"{user()} {process(os.getpid())}",
        UNTIL: until.isoformat(timespec="seconds"),
    }


def user() -> str:
    """Return who makes something, and on which machine."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def process(pid: int) -> str:
    """Return a process by its id and its time of start; nothing if there is none (proc(5))."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    return f"{pid}-{stat.rpartition(')')[2].split()[19]}"


def left_behind(annotations: Mapping[str, str], now: datetime) -> bool:
    """Tell whether the run that made a namespace has ended: its process, if that was here, or its time."""
    who, _, made_by = annotations.get(OWNER, "").partition(" ")
    if who.rpartition("@")[2] == socket.gethostname() and made_by:
        return process(int(made_by.partition("-")[0])) != made_by
    try:
        return now > datetime.fromisoformat(annotations.get(UNTIL, ""))
    except ValueError:
        return False


def remove_leftovers(client: Outside) -> None:
    """Remove what an earlier run left in a cluster. Raises LookupError for what is no leftover."""
    metadata = client.find("namespace", NAMESPACE).get("metadata")
    if not metadata:
        return
    if not LABEL.items() <= metadata.get("labels", {}).items():
        raise LookupError(f"cluster {client.cluster!r} has a namespace {NAMESPACE} that is not ours")
    annotations = metadata.get("annotations", {})
    if "deletionTimestamp" not in metadata and not left_behind(annotations, datetime.now(UTC)):
        who, until = annotations.get(OWNER), annotations.get(UNTIL)
        if name := annotations.get(TESTBED):
            raise LookupError(
                f"cluster {client.cluster!r}: testbed {name!r} of {who} stays up there until {until}: "
                f"./invokew down --name {name} ends it"
            )
        raise LookupError(
            f"cluster {client.cluster!r}: a run of {who} is under way, until {until} at the latest; if it is "
            f"not, delete namespace {NAMESPACE}"
        )
    remove(client)


def persisted(client: Outside) -> Record | None:
    """Return what a cluster says of a testbed that stays up there; None if there is none.

    Raises CommandError if it cannot be asked.
    """
    shown = client.find("configmap", STATE, f"--request-timeout={ANSWER_SECONDS}s")
    return Record(**shown["data"]) if shown else None


def remove(client: Outside) -> None:
    """Remove the namespace, and wait until it is gone. Raises PodError."""
    # Its pods first: the controller of namespaces looks ever more seldom whether theirs are gone.
    waiting = ["--ignore-not-found", f"--timeout={REMOVAL_SECONDS}s"]
    for what in (("pods", "--all"), ("namespace", NAMESPACE)):
        done = client.run("delete", *what, *waiting, check=False, timeout=REMOVAL_SECONDS + RUN_SECONDS)
        if done.status == 0:
            continue
        message = "; ".join([done.stderr.strip().rpartition("\n")[2], *_remaining(client)])
        raise PodError(f"cluster {client.cluster}: namespace {NAMESPACE} cannot be removed: {message}")


def _remaining(client: Outside) -> list[str]:
    """Return why a namespace that was deleted is still there, as the cluster says it."""
    found = client.find("namespace", NAMESPACE, check=False)
    if not found:
        return []
    conditions = found.get("status", {}).get("conditions", [])
    pods = [pod["metadata"]["name"] for pod in client.get("pods")["items"]]
    last = {event["involvedObject"].get("name"): event["message"] for event in client.get("events")["items"]}
    return [
        *(condition["message"] for condition in conditions if condition["status"] == "True"),
        *(f"pod {name}: {last.get(name)}" for name in pods),
    ]


def namespace_manifest(annotations: Mapping[str, str]) -> Manifest:
    """Return the namespace; whoever owns it and until when is for later runs to read."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            # Helpers enter the node, which only privileged pods may.
            "labels": {**LABEL, "pod-security.kubernetes.io/enforce": "privileged"},
            "annotations": dict(annotations),
        },
    }


def _object(kind: str, name: str) -> Manifest:
    """Return an object of the namespace that has nothing but a name; an account may do nothing."""
    metadata = {"name": name, "namespace": NAMESPACE, "labels": LABEL}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


def helper_name(node: str) -> str:
    """Return the name of a node's helper; no pod of a scenario has a dot in its name."""
    return f"node.{name_of(node)}"


def helper_manifest(node: str, machine: Machine, image: str, seconds: int) -> Manifest:
    """Return the pod by which the harness enters a node: its network and its files, with all rights."""
    container = _container(image)
    container["securityContext"] = {"privileged": True}
    # What the runtime mounts later, a pod's network namespace above all, is seen here too.
    container["volumeMounts"] = [
        {"name": "node", "mountPath": NODE, "mountPropagation": "HostToContainer"},
    ]
    return _pod(
        helper_name(node),
        seconds,
        {
            "nodeName": machine.name,
            "hostNetwork": True,
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
            "volumes": [{"name": "node", "hostPath": {"path": "/"}}],
        },
    )


def pod_manifest(
    scenario: Scenario, enforcement: Enforcement, name: str, machine: Machine, image: str, seconds: int
) -> Manifest:
    """Return a scenario's pod; what it says of bandwidth is what it says anywhere."""
    known = manifests.pod(scenario, enforcement, name)
    (container,) = known["spec"]["containers"]
    container |= {"image": image, "imagePullPolicy": "IfNotPresent"}
    asked = container.pop("resources", {}).get("limits", {})
    if limits := {one: rate for one, rate in asked.items() if one in machine.publishes}:
        container["resources"] = {"limits": limits}
    spec = {"containers": [container], "nodeSelector": {"kubernetes.io/hostname": machine.hostname}}
    made = _pod(known["metadata"]["name"], seconds, spec, known["metadata"]["annotations"])
    made["metadata"]["labels"] = known["metadata"]["labels"] | LABEL
    return made


def container_manifest(name: str, machine: Machine, image: str, seconds: int) -> Manifest:
    """Return a scenario's container: a pod in the node's own network, which no CNI plugin ever sees."""
    inside = _container(image)
    inside["securityContext"] = {"capabilities": {"add": ["NET_ADMIN"]}}
    return _pod(
        name_of(name),
        seconds,
        {
            "containers": [inside],
            "hostNetwork": True,
            "nodeSelector": {"kubernetes.io/hostname": machine.hostname},
        },
    )


def _container(image: str) -> dict[str, Any]:
    return {"name": "traffic", "image": image, "imagePullPolicy": "IfNotPresent"}


def _pod(
    name: str, seconds: int, spec: dict[str, Any], annotations: Mapping[str, str] | None = None
) -> Manifest:
    pod = _object("Pod", name)
    pod["metadata"]["annotations"] = dict(annotations or {})
    pod["spec"] = {
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        # A harness that was killed removes nothing; the next run does, and this.
        "activeDeadlineSeconds": seconds,
        **spec,
    }
    return pod
