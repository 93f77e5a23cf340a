"""Who is who in a cluster: one authority, an identity for each component, and kubeconfigs that carry them.

Made by ``openssl`` where the authority's key stays, on the master. An identity is one text in PEM: its
private key and its certificate, which every component takes for both its key file and its certificate file.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.access.place import Node

DAYS = 365


@dataclass(frozen=True)
class Subject:
    """Whom a certificate names, as Kubernetes understands it: a user and its groups."""

    name: str
    groups: Sequence[str] = ()
    addresses: Sequence[str] = ()  # where it serves, besides
    authority: bool = False


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
