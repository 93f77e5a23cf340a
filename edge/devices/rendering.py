"""What a Connection has made for it: one Deployment and one Service, both called ``dop-NAME``.

Pure, and the same text for the same objects. All that is rendered is applied by one field manager, so that
what others write beside it stays. ``translate`` needs no program in the proxy pod: what the annotation
``concorde.contmec.dev/forward`` lists is rewritten by the kernel in the pod's own network, by rules that the
CNI plugin writes there. ``relay`` is the thesis' way, a socat for each handler.

The list itself is the Deployment's annotation, which each gateway keeps as a file; pods name it. So other
handlers change it, and not the pods: connections through them go on.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from edge.devices.kinds import API, CONNECTION, GROUP, RELAY, Component, Connection, Device, Handler

Json = dict[str, Any]

NETWORKS = "k8s.v1.cni.cncf.io/networks"
FORWARD = "concorde.contmec.dev/forward"
REACH = "concorde.contmec.dev/reach"
FROM_DEVICE, TO_DEVICE = "concorde.contmec.dev/egress-guarantee", "concorde.contmec.dev/egress-guarantee.net1"
OF_CONNECTION, OF_DEVICE = f"{GROUP}/connection", f"{GROUP}/device"  # labels
# A pod's labels: whether requests go to it, and the digest of all that it is made of.
SERVING, REVISION = f"{GROUP}/serving", f"{GROUP}/revision"
RENDERED = f"{GROUP}/rendered"  # an annotation: of what is rendered, the digest
FIRST_PORT = 8000  # where a relay listens, as in the thesis: below 1024 it would need a right
UDP_SECONDS = 30  # after its client's last datagram a relay's process ends
# Connections that a relay may have yet to take. Of more the kernel drops what asks for them, and a second is
# lost: with socat's own 5 after a twentieth of one at a hundred a second. With many, who asks has given up
# before he is heard, and makes the next one late.
BACKLOG = 32
LAST_SECONDS = 1  # a relay goes on, for those who have not heard yet that it is to end
DEAD_SECONDS = 2  # on a node that is not ready, or out of reach
LAST_PORT = 65535
NOWHERE = "down"  # a port's target that no pod has: a Service refuses there, and its other ports go on
UNPRIVILEGED = 65534


class Settings(NamedTuple):
    """Images of proxy pods, and how often one asks its device whether it answers (seconds; 0: never)."""

    pause: str
    relay: str
    probe_seconds: int = 2


class Port(NamedTuple):
    """A handler, and where the proxy pod takes what is for it."""

    handler: Handler
    up: bool
    taken: int

    @property
    def name(self) -> str:
        """How a Service calls it."""
        return f"{self.handler.transport.lower()}-{self.handler.port}"


def rendered(connection: Connection, device: Device, uid: str, settings: Settings) -> tuple[Json, Json]:
    """Return the Deployment and the Service. Raises LookupError for a component that the device has not."""
    components = [device.component(name) for name in connection.components]
    ports = list(taken_ports(connection, components))
    return deployment(connection, device, ports, uid, settings), service(connection, device, ports, uid)


def taken_ports(connection: Connection, components: Sequence[Component]) -> Iterator[Port]:
    """Yield the handlers of components, each with the proxy pod's port for it."""
    number = FIRST_PORT
    for component in components:
        for handler in component.handlers:
            yield Port(handler, component.up, number if connection.mode == RELAY else handler.port)
            number += 1


def service(connection: Connection, device: Device, ports: Sequence[Port], uid: str) -> Json:
    """Return the Service, whose ports are the device's."""
    listed = [
        {
            "name": port.name,
            "protocol": port.handler.transport,
            "port": port.handler.port,
            "targetPort": port.taken if port.up else NOWHERE,
        }
        for port in ports
    ]
    spec = {"selector": {OF_CONNECTION: connection.name, SERVING: "true"}, "ports": listed}
    return _object("v1", "Service", connection, device, uid, spec, {})


def deployment(
    connection: Connection, device: Device, ports: Sequence[Port], uid: str, settings: Settings
) -> Json:
    """Return the Deployment; while the device is down it has no pods.

    A component that is down changes the Service alone: pods made anew would cut who uses the others.
    """
    promised = int(any(connection.guarantee))
    relays = connection.mode == RELAY
    forwarded: dict[str, str] = {} if relays else {FORWARD: json.dumps(_forwarded(device, ports))}
    made = template(connection, device, ports, settings)
    # A name, so that what the list says may change while pods run.
    made["metadata"]["annotations"].update(dict.fromkeys(forwarded, f"@{connection.proxy}"))
    _spread(made, connection)
    spec = {
        "replicas": connection.replicas if device.up else 0,
        "revisionHistoryLimit": 1,
        "selector": {"matchLabels": {OF_CONNECTION: connection.name}},
        # Who is new begins before who is old ends, so that there is always somebody to connect to; unless
        # the old one has a promise, for which there may be room but once.
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1 - promised, "maxUnavailable": promised},
        },
        "template": made,
    }
    return _object("apps/v1", "Deployment", connection, device, uid, spec, forwarded)


def template(connection: Connection, device: Device, ports: Sequence[Port], settings: Settings) -> Json:
    """Return what a proxy pod is made of, which has itself the list of what it sends on."""
    relays = connection.mode == RELAY
    containers = _relays(device, ports, settings) if relays else [_waiting(ports, settings)]
    return {
        "metadata": {
            "labels": {**_labels(connection, device), SERVING: "true"},
            "annotations": annotations_of(connection, device, ports),
        },
        "spec": {**_placed(device), "containers": containers},
    }


def _spread(made: Json, connection: Connection) -> None:
    """Let a template's pods be spread over the gateways, evenly, if there are several.

    Those alone count that are made of the same: else the last of those before keep a gateway from new ones,
    and once they have gone all new ones are on another.
    """
    labels = made["metadata"]["labels"]
    labels[REVISION] = _digest(made)
    if connection.replicas > 1:
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {key: labels[key] for key in (OF_CONNECTION, REVISION)}},
        }
        made["spec"]["topologySpreadConstraints"] = [spread]


def _digest(made: object) -> str:
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:16]


def _object(
    api: str,
    kind: str,
    connection: Connection,
    device: Device,
    uid: str,
    spec: Mapping[str, Any],
    annotations: Mapping[str, str],
) -> Json:
    owner = {"apiVersion": API, "kind": CONNECTION, "name": connection.name, "uid": uid, "controller": True}
    metadata: Json = {
        "name": connection.proxy,
        "namespace": connection.namespace,
        "labels": _labels(connection, device),
        "ownerReferences": [owner],
        "annotations": dict(annotations),
    }
    made = {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": dict(spec)}
    metadata["annotations"] = {**annotations, RENDERED: _digest(made)}
    return made


def _labels(connection: Connection, device: Device) -> Json:
    # A Device's name may be longer than a label's value; it is for people.
    return {OF_CONNECTION: connection.name, OF_DEVICE: device.name[:63].rstrip(".-")}


def annotations_of(connection: Connection, device: Device, ports: Sequence[Port]) -> dict[str, str]:
    """Return what a proxy pod's say of its network, of its promises, and of where packets may go there."""
    relays = connection.mode == RELAY
    asked = {
        NETWORKS: connection.network,
        FROM_DEVICE: connection.guarantee.from_device,
        TO_DEVICE: connection.guarantee.to_device,
        FORWARD: "" if relays else json.dumps(_forwarded(device, ports)),
        REACH: json.dumps(_reached(device, ports)) if relays else "",
    }
    return {key: text for key, text in asked.items() if text}


def _forwarded(device: Device, ports: Sequence[Port]) -> list[Json]:
    """Return where packets to the pod's ports go, and those to the port by which it is asked."""
    listed = [(port.handler.transport, port.taken, port.handler.port) for port in ports]
    asked = [(protocol, asked_at(ports), target) for protocol, _, target in listed if protocol == "TCP"]
    return [
        {"protocol": protocol, "port": port, "address": str(device.address), "targetPort": target}
        for protocol, port, target in (*listed, *asked[:1])
    ]


def _reached(device: Device, ports: Sequence[Port]) -> list[Json]:
    """Return what relays of these ports connect to."""
    address = str(device.address)
    listed = dict.fromkeys((port.handler.transport, port.handler.port) for port in ports)
    return [{"protocol": protocol, "port": port, "address": address} for protocol, port in listed]


def asks(connection: Connection, device: Device) -> bool:
    """Return whether a connection's pods ask whether the device answers: by TCP, if they translate."""
    handlers = (
        one for part in device.components if part.name in connection.components for one in part.handlers
    )
    return connection.mode != RELAY and any(one.transport == "TCP" for one in handlers)


def asked_at(ports: Sequence[Port]) -> int:
    """Return at which port a pod is asked whether its device answers: the last that no handler has."""
    taken = {port.taken for port in ports if port.handler.transport == "TCP"}
    return next(number for number in range(LAST_PORT, 0, -1) if number not in taken)


def _placed(device: Device) -> Json:
    """Return where pods may be, and what they may not: on the gateways, and nothing."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in device.nodes
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {
        "affinity": {"nodeAffinity": required},
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{state}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": DEAD_SECONDS,
            }
            for state in ("not-ready", "unreachable")
        ],
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 2,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UNPRIVILEGED,
            "runAsGroup": UNPRIVILEGED,
        },
    }


def _container(name: str, image: str, **more: Any) -> Json:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "1m", "memory": "4Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        **more,
    }


def _waiting(ports: Sequence[Port], settings: Settings) -> Json:
    """Return the container of a pod that only is there; ready if the device answers its network."""
    asked = [port for port in ports if port.handler.transport == "TCP"]
    probe: Json = {}
    if asked and settings.probe_seconds:
        probe["readinessProbe"] = {
            "tcpSocket": {"port": asked_at(ports)},
            "periodSeconds": settings.probe_seconds,
            "timeoutSeconds": settings.probe_seconds,
            "failureThreshold": 2,
        }
    return _container("pause", settings.pause, **probe)


def _relays(device: Device, ports: Sequence[Port], settings: Settings) -> list[Json]:
    names = container_names([port.handler for port in ports])
    return [
        _container(
            name,
            settings.relay,
            args=socat(device, port, "$(POD_IP)"),
            # It listens on the side of the cluster alone.
            env=[{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            ports=[{"containerPort": port.taken, "protocol": port.handler.transport}],
            # By the one program that is there: it waits for what nobody sends.
            lifecycle={"preStop": {"exec": {"command": ["socat", "-T", str(LAST_SECONDS), "PIPE", "PIPE"]}}},
        )
        for name, port in zip(names, ports)
    ]


def socat(device: Device, port: Port, address: str) -> list[str]:
    """Return socat's arguments to relay a handler; ``address`` is the pod's in the cluster."""
    protocol = f"{port.handler.transport}4"
    listen = f"{protocol}-LISTEN:{port.taken},bind={address},reuseaddr,fork"
    if protocol == "TCP4":
        listen += f",backlog={BACKLOG}"
    until = ["-T", str(UDP_SECONDS)] if protocol == "UDP4" else []
    return [*until, listen, f"{protocol}:{device.address}:{port.handler.port}"]


def container_names(handlers: Sequence[Handler]) -> list[str]:
    """Return names as Kubernetes takes them, each another: the handlers' own, as far as that goes."""
    found: list[str] = []
    for one in handlers:
        cut = re.sub(r"[^a-z0-9]+", "-", one.name.lower()).strip("-")[:40].strip("-")
        number = f"{one.transport.lower()}-{one.port}"
        found.append(cut if cut and cut not in found else f"{cut}-{number}".strip("-"))
    # A name may be what another one became.
    return found if len(set(found)) == len(found) else [f"handler-{n}" for n in range(len(handlers))]
