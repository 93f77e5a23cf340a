"""A cluster's control plane, on the master's node: etcd, API server, controllers, scheduler, identities."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from testbed.access.components import Component, ComponentError
from testbed.access.place import Node, in_parallel
from testbed.overlays.pod_network import etcd_arguments
from testbed.scenario.addressing import ETCD_PORT, Addressing
from testbed.scenario.services import API
from testbed.supplies.binaries import Binaries
from testbed.supplies.versions import Version

# Nobody here has to be kept from asking an API too much. Keeping accounts of who asks took more than half of
# what an API server without any work needs of the processor.
FREE = {"enable-priority-and-fairness": "false"}
# How pods call the API's own service, whose address is the first of the range.
API_NAMES = [f"kubernetes{rest}" for rest in ("", ".default", ".default.svc", ".default.svc.cluster.local")]
# No kube-proxy leads from an API server to a Service's address, such as a webhook's.
ROUTING = {"enable-aggregator-routing": "true"}
# A component that ends says so at once; on an emulated machine one that does not may need minutes.
UP_SECONDS = 300.0
# The gate of whatever counts pods' disks, and what nodes have of them.
DISK_LIMITS = "LocalStorageCapacityIsolation"


def directory_of(cluster: str) -> str:
    """Return where all files of a cluster lie, on each of its nodes."""
    return f"/run/kubernetes/{cluster}"


def endpoint(addressing: Addressing, cluster: str) -> tuple[str, int]:
    """Return the address and port of a cluster's API server, on the underlay."""
    address = addressing.address(addressing.scenario.clusters[cluster].master)
    return str(address), addressing.api_port(cluster)


class ControlPlane:
    """The control plane of one cluster."""

    def __init__(self, addressing: Addressing, cluster: str, master: Node, programs: Binaries) -> None:
        self.cluster = cluster
        self.master = master
        self.address, self.port = endpoint(addressing, cluster)
        self.server = f"https://{self.address}:{self.port}"
        self.directory = directory_of(cluster)
        self.components: dict[str, Component] = {}
        self._addressing = addressing
        self._programs = programs

    @property
    def admin(self) -> str:
        """The path, on the master, of a kubeconfig that may do everything."""
        return f"{self.directory}/admin.conf"

    def begin(self) -> None:
        """Start what needs no waiting for: etcd; and make the identities that all others need."""
        self.master.run(["mkdir", "-p", self.directory])
        etcd_port = ETCD_PORT + 2 * self._addressing.position(self.cluster)
        etcd = etcd_arguments(f"{self.directory}/etcd/data", f"http://127.0.0.1:{etcd_port}", etcd_port + 1)
        self._start("etcd", ["etcd", *etcd])
        self.authority = Authority(self.master, self.directory, f"cluster-{self.cluster}")
        services = self._addressing.service_range(self.cluster)
        serving = Subject(
            "kube-apiserver",
            ["system:masters"],  # as whom it talks to kubelets
            [self.address, "127.0.0.1", "localhost", str(services[API]), *API_NAMES],
        )
        self._write("authority.crt", self.authority.certificate)
        self._write("kube-apiserver.pem", self.authority.identify(serving))
        arguments = api_server_arguments(self.directory, self.address, self.port, etcd_port, services)
        self._start("kube-apiserver", [str(self._programs.path("kube-apiserver")), *arguments])
        self._write("admin.conf", self.kubeconfig(ADMIN))

    def finish(self) -> None:
        """Wait for the API server, and start those that work through it. Raises ComponentError."""
        try:
            self.components["kube-apiserver"].wait_until_it_answers(f"{self.server}/readyz", UP_SECONDS)
        except ComponentError:
            if fault := self.components["etcd"].fault():
                raise ComponentError(fault) from None
            raise
        in_parallel(self._start_client, ["kube-controller-manager", "kube-scheduler"])

    def kubeconfig(self, subject: Subject) -> str:
        """Return a kubeconfig for somebody new."""
        return self.kubeconfig_of(self.authority.identify(subject))

    def kubeconfig_of(self, identity: str) -> str:
        """Return a kubeconfig for who has an identity."""
        return render_kubeconfig(self.cluster, self.server, self.authority.certificate, identity)

    def _start_client(self, program: str) -> None:
        """Start a component that is nothing but a client of the API server."""
        kubeconfig = f"{program}.conf"
        user = f"system:{program}"
        self._write(kubeconfig, self.kubeconfig(Subject(user)))
        arguments = client_arguments(program, self._programs.version, self.directory)
        self._start(program, [str(self._programs.path(program)), *arguments])

    def _start(self, name: str, argv: list[str]) -> None:
        component = Component(
            f"{name} of cluster {self.cluster}", self.master, f"{self.directory}/{name}", argv
        )
        self.components[name] = component
        component.start()

    def _write(self, name: str, text: str) -> None:
        self.master.run(["tee", f"{self.directory}/{name}"], stdin=text)


def api_server_arguments(
    directory: str, address: str, port: int, etcd_port: int, services: IPv4Network
) -> list[str]:
    """Return kube-apiserver's arguments."""
    identity = f"{directory}/kube-apiserver.pem"
    authority = f"{directory}/authority.crt"
    return [
        f"--advertise-address={address}",
        f"--secure-port={port}",
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        f"--client-ca-file={authority}",
        f"--tls-cert-file={identity}",
        f"--tls-private-key-file={identity}",
        f"--kubelet-client-certificate={identity}",
        f"--kubelet-client-key={identity}",
        "--kubelet-preferred-address-types=InternalIP",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={services}",
        *(f"--{name}={value}" for name, value in (FREE | ROUTING).items()),
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={identity}",
        f"--service-account-signing-key-file={identity}",
        "--profiling=false",
    ]


def scheduler_options(version: Version) -> dict[str, str]:
    """Return what a scheduler is told besides: no more than kubelets to count pods' disks.

    Kubelets that do not count publish none. A scheduler that does takes from that what kubeadm's pod of etcd
    asks for: so there is less than none, and from then on no pod that asks for anything fits on a master
    (1.20, plugins/noderesources/fit.go, fitsRequest).
    """
    return {"feature-gates": f"{DISK_LIMITS}=false"} if version.limits_disks_by_gate else {}


def client_arguments(program: str, version: Version, directory: str) -> list[str]:
    """Return the arguments of kube-controller-manager or kube-scheduler; neither serves anything."""
    arguments = [
        f"--kubeconfig={directory}/{program}.conf",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
    ]
    if version.has_insecure_ports:
        arguments.append("--port=0")
    if program == "kube-controller-manager":
        arguments += [
            # The nodes come with their subnets.
            "--allocate-node-cidrs=false",
            f"--root-ca-file={directory}/authority.crt",
            f"--service-account-private-key-file={directory}/kube-apiserver.pem",
            "--use-service-account-credentials=true",
        ]
    else:
        arguments += [f"--{name}={value}" for name, value in scheduler_options(version).items()]
    return arguments


# Where things are on a provisioned machine, and what the installer calls what it makes in a cluster: see
# docs/howto/machines-become-clusters.md and ``plugin/deploy``.
HOME = "/opt/concorde-testbed"  # programs, which all clusters share
SETTINGS = "/etc/concorde-testbed"
CELLS = "/var/cells"  # where all that is a cell's own lies
PROGRAMS, CNI = f"{HOME}/bin", f"{HOME}/cni"
IN_CELL = f"{PROGRAMS}/in-cell"  # CLUSTER COMMAND...: where its containerd and kubelet are
ADMIN_KUBECONFIG = "/etc/kubernetes/admin.conf"  # in a master's cell
CONFIGURATION = "concorde"  # namespace and name of the installer's ConfigMap
LIST, DIRECTORY = "concorde.conflist", "bin-dir"  # its keys


def network_directory(cluster: str) -> str:
    """Return where a cell's containerd finds its network configuration."""
    return f"{SETTINGS}/{cluster}/net.d"


def patches(cluster: str) -> str:
    """Return where kubeadm finds what is to be different about a control plane's pods."""
    return f"{SETTINGS}/{cluster}/patches"


# Who is who in a cluster: one authority, an identity for each component, and kubeconfigs that carry them.
# They are made by ``openssl`` where the authority's key stays, on the master. An identity is one text in PEM:
# its private key and its certificate, which every component takes for both its key file and its certificate
# file.
DAYS = 365


@dataclass(frozen=True)
class Subject:
    """Whom a certificate names, as Kubernetes understands it: a user and its groups."""

    name: str
    groups: Sequence[str] = ()
    addresses: Sequence[str] = ()  # where it serves, besides
    authority: bool = False


ADMIN = Subject("kubernetes-admin", ["system:masters"])


def render_request(subject: Subject) -> str:
    """Return the configuration of ``openssl req`` for a subject's certificate."""
    groups = "".join(f"{index}.O = {group}\n" for index, group in enumerate(subject.groups))
    extensions = "basicConstraints = critical, CA:FALSE\nextendedKeyUsage = clientAuth, serverAuth\n"
    if subject.authority:
        extensions = "basicConstraints = critical, CA:TRUE\nkeyUsage = critical, keyCertSign\n"
    if subject.addresses:
        names = [f"{'IP' if re.fullmatch(r'[0-9.]+', a) else 'DNS'}:{a}" for a in subject.addresses]
        extensions += f"subjectAltName = {', '.join(names)}\n"
    return (
        "[req]\nprompt = no\ndistinguished_name = name\nx509_extensions = extensions\n"
        f"[name]\n{groups}CN = {subject.name}\n"
        f"[extensions]\n{extensions}"
    )


class Authority:
    """A cluster's certificate authority, on its master."""

    def __init__(self, master: Node, directory: str, name: str) -> None:
        self._master = master
        self._file = f"{directory}/authority.pem"
        text = self._make(Subject(name, authority=True))
        master.run(["tee", self._file], stdin=text)
        self.certificate = _certificate(text)

    def identify(self, subject: Subject) -> str:
        """Return a new identity: key and certificate as one PEM text."""
        return self._make(subject, "-CA", self._file, "-CAkey", self._file)

    def _make(self, subject: Subject, *signed_by: str) -> str:
        return self._master.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc",
             "-days", str(DAYS), "-config", "/dev/stdin", "-keyout", "/dev/stdout", *signed_by],
            stdin=render_request(subject),
        ).stdout  # fmt: skip


def render_kubeconfig(cluster: str, server: str, authority: str, identity: str) -> str:
    """Return a kubeconfig that reaches a server as somebody; all it needs is in it.

    ``authority`` is the certificate that vouches for the server. JSON, which is YAML too.
    """
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": cluster,
                    "cluster": {"server": server, "certificate-authority-data": _data(authority)},
                }
            ],
            "users": [
                {
                    "name": cluster,
                    "user": {"client-certificate-data": _data(identity), "client-key-data": _data(identity)},
                }
            ],
            "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
            "current-context": cluster,
        },
        indent=1,
    )


def at_server(kubeconfig: str, server: str) -> str:
    """Return a kubeconfig that reaches the same server at another address."""
    config = json.loads(kubeconfig)
    config["clusters"][0]["cluster"]["server"] = server
    return json.dumps(config, indent=1) + "\n"


def _data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _certificate(pem: str) -> str:
    match = re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", pem, re.DOTALL)
    assert match is not None
    return match[0]
