"""The words of a scenario: what one experiment is made of.

This module says what each field is; ``rules`` says how the fields must agree with each other, and ``files``
how a scenario is read and written. Rates are bits per second, times are seconds, everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    SerializeAsAny,
    StringConstraints,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from testbed.registry import Registry
from testbed.scenario import settings as settings_of_parts
from testbed.scenario.descriptions import Description
from testbed.scenario.devices import Connection, Device, Segment
from testbed.scenario.faults import ScenarioError
from testbed.scenario.units import format_factor
from testbed.scenario.words import (
    Address,
    DnsLabel,
    Interface,
    Label,
    LabelValue,
    Name,
    Network,
    Network6,
    Part,
    Rate,
    Seconds,
    Share,
    Title,
)

Scaled = TypeVar("Scaled", bound=BaseModel)

NODE_PREFIX = 24  # of a subnet, where a scenario says one range of pods and no size
ANSWERED = 20  # of a rate that is received one part in so many is what acknowledgements need, 2 to 5 %
MOST_POD_CIDRS = 100  # of a cluster: each of its nodes is compared with all

# A part is known once it is imported or registered. The model checks names by these, and imports no part.
ENFORCEMENTS: Registry[Any] = Registry("enforcement", word="enforcement")  # testbed.scenario.enforcements
NETWORKS: Registry[Any] = Registry("pod network", word="backend")  # testbed.scenario.networks


def _known(enforcement: object) -> str | Description:
    """Return the name of a known enforcement, or a description (read by testbed.scenario.descriptions)."""
    if isinstance(enforcement, (dict, Description)):
        return Description.model_validate(enforcement)
    return ENFORCEMENTS.check(enforcement)


def _describe_known(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema what may stand for an enforcement."""
    name, description = schema["anyOf"]
    ENFORCEMENTS.describe(name)
    schema["anyOf"] = [name, {"type": "string", "pattern": r"/|\.ya?ml$"}, description]


# The model of each is the part's own.
SettingsOfPart = Annotated[Part, WithJsonSchema({"type": "object"})]


def _read_settings(said: object) -> object:
    try:
        return None if said is None else settings_of_parts.read(said)
    except ScenarioError as error:
        raise ValueError(str(error)) from None


class Underlay(Part):
    """The network that joins the nodes: one switch, and a cable to each node."""

    cidr: Network = Field(IPv4Network("192.168.56.0/24"), description="the nodes' addresses, in their order")
    mtu: int = Field(1500, ge=576, le=9216, description="bytes of an IP packet on the underlay")
    rate: Rate | None = Field(
        None, description="speed of each node's link, both ways, enforced at the switch; none: the machine's"
    )
    frame_overhead: int = Field(
        0,
        ge=0,
        le=200,
        description="bytes of a link that a frame takes besides its own: 24 of Ethernet; 0 of enforced ones",
    )


class Zone(Part):
    """Nodes at one place, on a switch of their own, and the trunk that joins it to the others."""

    rate: Rate | None = Field(None, description="speed of the trunk, both ways; none: the machine's")
    delay: Seconds = Field(0.0, description="seconds that a packet takes through the trunk, one way")
    jitter: Seconds = Field(0.0, description="seconds by which the delay varies, up and down; netem only")
    loss: Share = Field(0.0, description="share of packets that are lost in the trunk; netem only")
    reorder: Share = Field(0.0, description="share of packets that overtake the others; netem only")


class Machine(Part):
    """The size of a virtual machine, where nodes are made as such."""

    cpus: int = Field(2, ge=1, le=512, description="virtual processors")
    memory: int = Field(2048, ge=256, le=4_194_304, description="MiB")


class Node(Part):
    """A place where commands run. Machines have addresses already; other nodes are given theirs."""

    address: Address | None = Field(None, description="on the underlay; without one they are numbered")
    uplink: Interface | None = Field(None, description="its interface on the underlay; without one, eth0")
    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")] | None = Field(
        None, description="its name in clusters that exist already; without one, the same or the next free"
    )
    machine: Machine | None = Field(None, description="its size as a virtual machine; without one, as all")
    zone: Name | None = Field(None, description="where it is; with zones every node is in one")
    rate: Rate | None = Field(None, description="speed of its own link, both ways; none: underlay.rate")
    labels: dict[Label, LabelValue] | None = Field(
        None, description="by which pod_cidrs are chosen for it; its name and zone are labels by themselves"
    )
    cpus: float | None = Field(
        None,
        gt=0,
        le=4096,
        description="processors, by which hints share out endpoints; where no node says any, all are alike",
    )
    expect: Literal["unassigned"] | None = Field(
        None, description="unassigned: as a worker it waits for a block of addresses that no pod_cidrs have"
    )


class Flannel(Part):
    """One cluster's VXLAN overlay, as flannel's vxlan backend programs it."""

    vni: int = Field(1, ge=1, le=2**24 - 1, description="VXLAN network identifier; one a cluster")
    port: int = Field(8472, ge=1, le=65_535, description="UDP port of the VTEPs")


class Resolve(Part):
    """When the entries of backend ``vxlan-miss`` are made: as by flannel's three generations."""

    l2: Literal["miss", "ahead"] = Field(
        "miss", description="behind which node a VTEP is: asked for by the kernel, or known ahead"
    )
    l3: Literal["miss", "ahead"] = Field(
        "miss", description="at which VTEP a pod is: asked for by the kernel, or routed ahead"
    )
    refresh: Literal["ignore", "answer"] = Field(
        "ignore",
        description="entries that are in use: asked for again when they are over, or kept",
    )


class Bgp(Part):
    """How the nodes of a cluster with backend ``bgp`` tell each other their pods' subnets."""

    route_reflector: Name | None = Field(
        None, description="the node that all others have their only session with; without one, a full mesh"
    )
    hold_time: int = Field(
        9,
        ge=3,
        le=65_535,
        description="seconds after which a silent node's routes go; keepalives are a third",
    )
    graceful_restart: bool = Field(
        True, description="whether routes of a daemon that ends stay until it is back, as with Calico"
    )
    connect_delay: int = Field(2, ge=1, le=3600, description="seconds before a daemon connects to another")
    port: int | None = Field(
        None, ge=1, le=65_535, description="TCP port of the daemons; without one 179, then 1790 and so on"
    )


class PodCidr6(Part):
    """The IPv6 range beside an IPv4 one, with blocks as large. Nodes get these, and pods get IPv4 alone."""

    cidr: Network6 = Field(description="what is divided into blocks")
    mask: int = Field(description="prefix length of a node's block")


class PodCidr(Part):
    """A range of pod addresses and the nodes that get blocks of it: a ClusterCIDRConfig in fewer words."""

    name: Name = Field(description="how it is called; no two of a cluster have the same")
    cidr: Network = Field(description="what is divided into blocks")
    mask: int = Field(description="prefix length of a node's block")
    ipv6: PodCidr6 | None = Field(None, description="the IPv6 range, if nodes are to have one of each family")
    nodes: dict[Label, LabelValue] = Field(
        {}, description="labels, all of which a node must have to get a block of it; none: any node"
    )


class Cluster(Part):
    """One master, its workers, one pod network. A worker may belong to several clusters."""

    master: Name = Field(description="the node of its control plane; it gets the first pod subnet")
    workers: list[Name] = Field(
        min_length=1, description="nodes that run its pods; a node may be a worker of several clusters"
    )
    pod_cidr: Network | None = Field(
        None, description="the cluster's pods; each node gets one subnet of it; or else pod_cidrs"
    )
    node_prefix: int | None = Field(
        None, ge=8, le=30, description="prefix length of a node's pod subnet; without one 24, with pod_cidr"
    )
    pod_cidrs: list[PodCidr] | None = Field(
        None,
        min_length=1,
        max_length=MOST_POD_CIDRS,
        description="the cluster's pods, where nodes differ in size: ranges, chosen by nodes' labels",
    )
    service_cidr: Network | None = Field(
        None,
        description="where its services have addresses; without one 10.96.0.0/16 or the next that is free",
    )
    flannel: Flannel = Field(Flannel(), description="its overlay; clusters that share a node differ in VNI")
    backend: Annotated[str, BeforeValidator(NETWORKS.check)] = Field(
        "vxlan",
        description="how its pods reach those of other nodes",
        json_schema_extra=NETWORKS.describe,
    )
    resolve: Resolve | None = Field(
        None, description="with backend vxlan-miss: when its entries are made; without it, all by miss"
    )
    bgp: Bgp | None = Field(None, description="settings of backend bgp, which has its own without them")

    @model_validator(mode="before")
    @classmethod
    def _former_word(cls, value: object) -> object:
        """Read ``network``, which is what recorded scenarios call the backend."""
        if not isinstance(value, dict) or "network" not in value:
            return value
        if "backend" in value:
            raise ValueError("network is the former name of backend: set only one of them")
        return {("backend" if key == "network" else key): word for key, word in value.items()}

    @model_validator(mode="before")
    @classmethod
    def _usual_prefix(cls, value: object) -> object:
        """Let a cluster with one size of subnets that says none have the usual one."""
        if not isinstance(value, dict) or value.get("pod_cidr") is None:
            return value
        if value.get("node_prefix") is not None:
            return value
        return {**value, "node_prefix": NODE_PREFIX}

    @property
    def pod_networks(self) -> tuple[IPv4Network, ...]:
        """Where its pods' addresses are, as it says."""
        if self.pod_cidr is not None:
            return (self.pod_cidr,)
        return tuple(one.cidr for one in self.pod_cidrs or ())

    @property
    def nodes(self) -> tuple[str, ...]:
        """The master, then the workers: the order in which nodes get their pod subnets."""
        return (self.master, *self.workers)


class Pod(Part):
    """A pod, and what its deployment file promises it."""

    cluster: Name = Field(description="whose pod it is")
    node: Name = Field(description="where it runs: a worker of its cluster")
    guarantee: Rate | None = Field(
        None,
        description="the rate promised to all that the pod sends; becomes the annotation "
        "concorde.contmec.dev/egress-guarantee",
    )
    answers: Rate | None = Field(
        None,
        description="the rate promised to its acknowledgements of what it receives; becomes the annotation "
        "concorde.contmec.dev/answers-guarantee; with ingress, without it a twentieth of that",
    )
    ingress: Rate | None = Field(
        None,
        description="the rate promised to all that it receives; becomes the annotation "
        "concorde.contmec.dev/ingress-guarantee",
    )
    ceiling: Rate | None = Field(
        None,
        description="the rate never exceeded by what the pod sends; becomes the annotation "
        "kubernetes.io/egress-bandwidth",
    )

    @property
    def answered(self) -> int:
        """What is promised to its answers, bits per second: what it says, or a share of what it receives.

        That is as the plugin has it (concorde/guarantees.py), and as far as the ceiling has room.
        """
        if self.answers is not None or self.ingress is None:
            return self.answers or 0
        needed = -(-self.ingress // ANSWERED)
        return needed if self.ceiling is None else max(0, min(needed, self.ceiling - (self.guarantee or 0)))

    @property
    def promised(self) -> int:
        """What is promised to all that it sends and to its answers together, bits per second."""
        return (self.guarantee or 0) + self.answered


class Container(Part):
    """A container beside Kubernetes, on the Docker-like network of its node."""

    node: Name = Field(description="where it runs")


class Service(Part):
    """One address for several pods: each connection to it gets one of them, its endpoint."""

    cluster: Name = Field(description="whose service it is")
    pods: list[Name] = Field(min_length=1, description="its endpoints: pods of its cluster")
    address: Address | None = Field(
        None, description="in the cluster's range of services; without one the next that is free, from .11 on"
    )
    port: int = Field(
        80, ge=1, le=65_535, description="of the first that is sent to it; what else is sent has the next"
    )
    hints: Literal["off", "auto", "strict", "close", "nearest"] = Field(
        "off",
        description="which endpoints a zone's nodes use; auto: as Kubernetes' Topology Aware Hints, strict: "
        "the same, and never above 120 % of an even share, close: the own zone's, nearest: by trunks' delays",
    )
    policy: Literal["Cluster", "Local"] = Field(
        "Cluster", description="internalTrafficPolicy; Local: only endpoints on the sender's node"
    )


TrafficEndpoint = Name
# What receives may be a connection, whose name may be as long as that of a service, less ``dop-``.
Destination = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]{0,57}[A-Za-z0-9])?$")]


class Transfer(Part):
    """What goes from one pod or container to another for some time; what it is says its kind."""

    name: Title | None = Field(None, min_length=1, max_length=60, description="default: FROM -> TO")
    source: TrafficEndpoint = Field(alias="from", description="the pod or container that sends")
    destination: Destination = Field(
        alias="to",
        description="the pod, container, service or connection that receives; flows: a service of one pod",
    )
    component: DnsLabel | None = Field(
        None,
        description="with a connection: of the device, whose first port of the protocol is meant",
        exclude_if=lambda known: known is None,
    )
    protocol: Literal["tcp", "udp"] = Field("tcp", description="a flow by UDP needs a rate")
    start: Seconds = Field(0.0, description="seconds after the run's beginning")
    duration: int = Field(10, ge=1, le=86_400, description="seconds; iperf3 counts whole ones")

    @property
    def label(self) -> str:
        """The name in tables, figures and files."""
        return self.name or f"{self.source} -> {self.destination}"

    @property
    def end(self) -> float:
        """Seconds after the run's beginning at which the transfer ends."""
        return self.start + self.duration


class Traffic(Transfer):
    """As much as there is room for, or as is offered: what counts is how much arrives."""

    parallel: int = Field(1, ge=1, le=128, description="streams")
    rate: Rate | None = Field(None, description="offered load of all streams; TCP: unlimited without it")
    size: int | None = Field(
        None, ge=16, le=9000, description="bytes of payload of a UDP packet; none: as many as fit one"
    )
    generator: Name | None = Field(None, description="the tool that makes the traffic; without one, iperf3")


class Requests(Transfer):
    """Small exchanges, a request and its answer each, at a given rate: what counts is how long each takes.

    Exchange number k is due k / rate seconds after the start, whatever has become of the others.
    """

    rate: float = Field(ge=0.1, le=20_000, allow_inf_nan=False, description="exchanges a second")
    size: int = Field(64, ge=16, le=65_536, description="bytes of payload of a request")
    answer: int = Field(64, ge=16, le=65_536, description="bytes of payload of an answer")
    connections: Literal["new", "kept"] = Field(
        "kept", description="a connection, or with UDP a socket, for each exchange, or one for all"
    )
    latency: float | None = Field(
        None, gt=0, le=60, allow_inf_nan=False, description="seconds that 99 % take at most; none: not judged"
    )
    lost: float | None = Field(None, ge=0, lt=1, description="the share lost at most; none: not judged")
    generator: Name | None = Field(None, description="the tool that makes them; without one, requests")

    @property
    def count(self) -> int:
        """How many exchanges are due."""
        return max(1, round(self.rate * self.duration))

    @property
    def judged(self) -> bool:
        """Whether there is anything to hold."""
        return self.latency is not None or self.lost is not None


class Measurement(Part):
    """How the run is observed."""

    interval: float = Field(
        0.1, ge=0.1, le=10, description="seconds of one sample; iperf3 takes no less than 0.1"
    )
    warm_up: Seconds = Field(0.5, description="seconds of each flow left out at its start: TCP's slow start")
    repetitions: int = Field(1, ge=1, le=1000)
    queues: float | None = Field(
        None,
        ge=0.01,
        le=10,
        description="seconds between two readings of every queue and class on the way; none: only what they "
        "dropped in all",
    )
    congestion_control: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,15}$")] = Field(
        "cubic",
        description="TCP's, by the kernel's name for it; said here, so that it is no habit of the host's",
    )


class Thresholds(Part):
    """When a guarantee counts as held; shares of the expected goodput."""

    mean: float = Field(0.99, gt=0, le=1, description="the mean of every phase is at least this share")
    sample: float = Field(0.90, gt=0, le=1, description="a sample attains when it is at least this share")
    effect: float = Field(0.01, gt=0, le=1, description="the least difference of two means that matters")
    # The last one: by it a scenario is known to be whole (bench.recording.directory).
    attainment: float = Field(0.95, ge=0, le=1, description="the share of samples that must attain")


class Shaping(Part):
    """HTB at one of the five interfaces of the paper's section 3.2, for a study of these places."""

    at: Literal["physical", "vtep", "bridge", "bridge-veth", "eth0"] = Field(
        description="the node's eth0, the VTEP, the bridge, or either side of the pod's veth pair"
    )
    classify: Literal["none", "source", "inner-source"] = Field(
        "none",
        description="how packets of pods that share the interface are told apart: not at all, by the source "
        "in the outermost IP header, or by the source inside VXLAN",
    )
    ceiling: Literal["rate", "link"] = Field(
        "rate", description="what a class may reach: its rate, as in the paper, or the link's"
    )


Kind = TypeVar("Kind", bound=Transfer)
# Of a transfer that is made short, no more than this share is left out at its start, and it has ten samples.
MOST_TITLE = 120  # characters
MOST_WARM_UP = 0.25
LEAST_SAMPLES = 10


def _timed(one: Kind, before: float, seconds: int) -> Kind:
    """Return a transfer at its place in ``seconds``, where the whole took ``before``.

    It takes whole seconds, around the middle that it had; but what lasts from the beginning does so, and what
    lasts to the end, too.
    """
    factor = seconds / before
    start, exact = one.start * factor, one.duration * factor
    duration = max(1, math.ceil(exact - 0.5))
    if one.start > 0:
        start += (exact - duration) / 2
    if one.end <= before:
        latest = seconds - duration
        start = latest if one.start > 0 and math.isclose(one.end, before) else min(start, latest)
    return one.model_copy(update={"start": max(0.0, round(start, 3)), "duration": duration})


def max_min(room: int, wanted: Mapping[str, int]) -> dict[str, int]:
    """Return what each gets of a room that is shared out, all alike but none more than it wants."""
    given = {}
    for number, one in enumerate(sorted(wanted, key=wanted.__getitem__)):
        given[one] = min(wanted[one], room // (len(wanted) - number))
        room -= given[one]
    return given


class Scenario(Part):
    """One experiment."""

    name: Name = Field(description="names the recording")
    title: Title = Field("", max_length=MOST_TITLE, description="heading of report and tables")
    underlay: Underlay = Field(Underlay(), description="the network that joins the nodes")
    machine: Machine = Field(Machine(), description="the size of nodes that are virtual machines")
    zones: dict[Name, Zone] = Field(
        {}, description="where nodes are: each a switch, and a trunk to the others; none: one switch for all"
    )
    nodes: dict[Name, Node] = Field(
        min_length=2, max_length=1000, description="where commands run; usually nothing behind the colon"
    )
    clusters: dict[Name, Cluster] = Field(
        min_length=1, description="masters, workers and pod networks; names have at most 11 characters"
    )
    container_cidr: Network = Field(
        IPv4Network("172.18.0.0/16"),
        description="every node's container network, behind masquerading as Docker's",
    )
    enforcement: Annotated[str | Description, BeforeValidator(_known)] = Field(
        "pod",
        description="the pods' network and who keeps their guarantees: a name, the path to a description, "
        "or a description; network says the same",
        json_schema_extra=_describe_known,
    )
    count: Literal["layer2", "payload"] = Field(
        "layer2", description="what a guarantee counts: Ethernet frames as tc does, or the payload users see"
    )
    shaping: Shaping | None = Field(None, description="HTB at one place; with enforcement none only")
    pods: dict[Name, Pod] = Field(min_length=1)
    containers: dict[Name, Container] = Field({})
    services: dict[Name, Service] = Field(
        {}, description="addresses of several pods, by name", exclude_if=lambda known: not known
    )
    segments: dict[DnsLabel, Segment] = Field(
        {}, description="private networks of devices, by name", exclude_if=lambda known: not known
    )
    devices: dict[DnsLabel, Device] = Field(
        {}, description="what is in segments, by name", exclude_if=lambda known: not known
    )
    connections: dict[DnsLabel, Connection] = Field(
        {},
        description="ways from clusters to devices; NAME is the service dop-NAME of its cluster",
        exclude_if=lambda known: not known,
    )
    flows: list[Traffic] = Field([])
    disturbances: list[Traffic] = Field([])
    requests: list[Requests] = Field([])
    settings: Annotated[
        dict[str, dict[str, SerializeAsAny[SettingsOfPart]]] | None, BeforeValidator(_read_settings)
    ] = Field(None, description="of parts that have some, by kind and name: settings.enforcement.NAME.FIELD")
    measurement: Measurement = Measurement()
    thresholds: Thresholds = Thresholds()

    @field_validator("zones", "nodes", "containers", mode="before")
    @classmethod
    def _bare_names(cls, value: object) -> object:
        """Let ``worker-01:`` without a value stand for a node with nothing special about it."""
        return {k: {} if v is None else v for k, v in value.items()} if isinstance(value, dict) else value

    @model_validator(mode="before")
    @classmethod
    def _other_word(cls, value: object) -> object:
        """Read ``network``, which says the same as ``enforcement``."""
        if not isinstance(value, dict) or "network" not in value:
            return value
        if "enforcement" in value:
            raise ValueError("network and enforcement are the same setting: set only one")
        return {("enforcement" if key == "network" else key): word for key, word in value.items()}

    @property
    def kept_by(self) -> str:
        """The name of its enforcement."""
        return self.enforcement if isinstance(self.enforcement, str) else self.enforcement.name

    @property
    def traffic(self) -> tuple[Traffic, ...]:
        """Everything that is sent for its own sake: flows, then disturbances."""
        return (*self.flows, *self.disturbances)

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """All that is sent: the traffic, then the requests."""
        return (*self.traffic, *self.requests)

    @property
    def measured(self) -> tuple[Transfer, ...]:
        """What is looked at: flows and requests."""
        return (*self.flows, *self.requests)

    @property
    def duration(self) -> float:
        """Seconds from the run's beginning to the end of its last flow, or of its last requests."""
        return max(one.end for one in self.measured)

    @property
    def ranges(self) -> tuple[IPv4Network, ...]:
        """Every range of addresses that it says."""
        clusters = self.clusters.values()
        return (
            self.underlay.cidr,
            self.container_cidr,
            *(segment.cidr for segment in self.segments.values()),
            *(network for cluster in clusters for network in cluster.pod_networks),
            *(cluster.service_cidr for cluster in clusters if cluster.service_cidr),
        )

    def node_of(self, endpoint: TrafficEndpoint) -> str:
        """Return the node on which a pod or container runs."""
        place: Pod | Container = self.pods[endpoint] if endpoint in self.pods else self.containers[endpoint]
        return place.node

    def segment_of(self, device: str) -> Segment | None:
        """Return the segment of a device; None if there is no such device, or segment."""
        return self.segments.get(self.devices[device].segment) if device in self.devices else None

    def gateways_of(self, connection: Connection) -> tuple[str, ...]:
        """Return the nodes of a connection's proxy pods: gateways that are workers of its cluster."""
        segment, workers = self.segment_of(connection.device), self.clusters[connection.cluster].workers
        own = [node for node in segment.nodes if node in workers] if segment else []
        return tuple(own[: connection.replicas])

    def receivers_of(self, transfer: Transfer) -> tuple[str, ...]:
        """Return where a transfer may arrive: of a service, all of its pods, of a connection, its device."""
        if transfer.destination in self.connections:
            return (self.connections[transfer.destination].device,)
        service = self.services.get(transfer.destination)
        return (transfer.destination,) if service is None else tuple(service.pods)

    def nodes_of(self, transfer: Transfer) -> tuple[str, str]:
        """Return the nodes of a transfer's sender and of its receiver; of several receivers, of the first."""
        return self.paths_of(transfer)[0]

    def paths_of(self, transfer: Transfer) -> tuple[tuple[str, str], ...]:
        """Return the nodes of a transfer's sender and of each of its receivers, or of a device's gateways."""
        here = self.node_of(transfer.source)
        if transfer.destination in self.connections:
            connection = self.connections[transfer.destination]
            return tuple((here, gateway) for gateway in self.gateways_of(connection))
        return tuple((here, self.node_of(one)) for one in self.receivers_of(transfer))

    def guarantee_of(self, transfer: Transfer) -> int | None:
        """Return what a transfer was promised, bits per second; None without a promise.

        That is what its sender was; on the way to a device at most what the connection was, and to a pod with
        a promise for what it receives at most its sender's share of that.
        """
        promises = [self._sent_by(transfer.source)]
        if transfer.destination in self.connections:
            promises.append(self.connections[transfer.destination].guarantee.to_device)
        known = [one for one in promises if one is not None]
        if len(known) < len(promises):
            return None
        return min([*known, *self._shares_at_receiver(transfer)])

    def _sent_by(self, endpoint: TrafficEndpoint) -> int | None:
        pod = self.pods.get(endpoint)
        return pod.guarantee if pod else None

    def _shares_at_receiver(self, transfer: Transfer) -> Iterator[int]:
        """Yield, of each moment at which a transfer's receiver is sent something else, what is the sender's.

        What is promised there is shared out by max-min among the pods that send then and were promised what
        they send, each of which has no use for more than that. Who was promised nothing has no part in it.
        """
        receivers = self.receivers_of(transfer)
        pod = self.pods.get(receivers[0]) if len(receivers) == 1 else None
        if pod is None or pod.ingress is None:
            return
        beside = [one for one in self.transfers if self.receivers_of(one) == receivers]
        for moment in {max(one.start, transfer.start) for one in beside if one.start < transfer.end}:
            senders = {one.source for one in beside if one.start <= moment < one.end} | {transfer.source}
            wanted = {one: rate for one in senders if (rate := self._sent_by(one)) is not None}
            yield max_min(pod.ingress, wanted)[transfer.source]

    def lasting(self, seconds: int) -> Scenario:
        """Return the same experiment with everything that is sent at its place in another time.

        The last of what is measured ends after ``seconds``. TCP needs its warm-up however short the rest is,
        so that this and the interval of samples stay, as long as they leave enough of the shortest transfer.
        """
        before = self.duration

        def timed(transfers: list[Kind]) -> list[Kind]:
            return [_timed(one, before, seconds) for one in transfers]

        fitted = self.model_copy(
            update={
                "flows": timed(self.flows),
                "disturbances": timed(self.disturbances),
                "requests": timed(self.requests),
            }
        )
        shortest, now = min(one.duration for one in fitted.measured), self.measurement
        update = {
            "warm_up": min(now.warm_up, shortest * MOST_WARM_UP),
            "interval": max(0.1, min(now.interval, shortest / LEAST_SAMPLES)),
        }
        return fitted.model_copy(update={"measurement": now.model_copy(update=update)})

    def scaled(self, factor: float) -> Scenario:
        """Return the same experiment with every rate in bits per second multiplied by ``factor``.

        Its title says so, for nobody shall take it for the other. Requests stay as they are: they fill no
        link, and a tenth of them would show no percentile.
        """
        if factor == 1:
            return self
        at = f", at {format_factor(factor)}"

        def times(rate: int | None) -> int | None:
            return None if rate is None else max(1, round(rate * factor))

        def scaled(part: Scaled, *fields: str) -> Scaled:
            return part.model_copy(update={field: times(getattr(part, field)) for field in fields})

        return self.model_copy(
            update={
                "title": f"{(self.title or self.name)[: MOST_TITLE - len(at)]}{at}",
                "underlay": scaled(self.underlay, "rate"),
                "zones": {name: scaled(zone, "rate") for name, zone in self.zones.items()},
                "nodes": {name: scaled(node, "rate") for name, node in self.nodes.items()},
                "segments": {name: scaled(one, "rate") for name, one in self.segments.items()},
                "connections": {
                    name: one.model_copy(
                        update={"guarantee": scaled(one.guarantee, "to_device", "from_device")}
                    )
                    for name, one in self.connections.items()
                },
                "pods": {
                    name: scaled(pod, "guarantee", "answers", "ingress", "ceiling")
                    for name, pod in self.pods.items()
                },
                "flows": [scaled(flow, "rate") for flow in self.flows],
                "disturbances": [scaled(disturbance, "rate") for disturbance in self.disturbances],
            }
        )
