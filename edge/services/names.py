"""Names of services for pods: a file of hosts, in a directory that dnsmasq reads (``--hostsdir``).

``SERVICE.NAMESPACE.svc.cluster.local`` is the service's cluster address, of IPv4. Who has none has no name:
headless and external services are left alone. dnsmasq, from 2.88 on, notices by itself that the file is
another, and forgets names that are not in it any more; what begins with a dot it does not read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Optional

from edge.http import Json
from edge.services.catalogue import SERVICES, Name, name_of, pass_on
from edge.services.support import UNREADABLE, address_of
from edge.watch import Listed, News

DOMAIN = "cluster.local"
FILE = "services"
# What a line of hosts may have as a part of a name (RFC 1123, 2.1); an API takes no other.
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def search(namespace: str) -> tuple[str, ...]:
    """Return where a pod looks for names, in kubelet's order."""
    return f"{namespace}.svc.{DOMAIN}", f"svc.{DOMAIN}", DOMAIN


class Names:
    """The hosts file of a cluster's services in a directory; without one nothing is written."""

    def __init__(self, directory: str) -> None:
        self.file = Path(directory, FILE) if directory else None
        self._lines: dict[Name, str] = {}
        self._due = False

    def take(self, news: News) -> None:
        """Take into account what is said of services; nothing is written yet."""
        if self.file is not None and news.kind == SERVICES:
            pass_on(news, self._lines, self._change, lambda _: None)
            self._due |= isinstance(news, Listed)

    def _change(self, name: Name, document: Optional[Json]) -> None:  # noqa: UP045 (Python 3.9)
        before = self._lines.pop(name, "")
        after = "" if document is None else line_of(document)
        if after:
            self._lines[name] = after
        self._due |= before != after

    def write(self) -> None:
        """Put the file in place, as a whole, if it is to be another. Raises OSError."""
        if self.file is None or not self._due:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new = self.file.with_name(f".{FILE}.new")
        new.write_text("".join(line for _, line in sorted(self._lines.items())), encoding="ascii")
        new.replace(self.file)
        self._due = False

    def remove(self) -> None:
        """Take the file away, if there is one. Raises OSError."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)


def line_of(service: Json) -> str:
    """Return a service's line of hosts; nothing if it has no name here."""
    try:
        address = address_of(service.get("spec") or {})
        namespace, name = name_of(service)
        named = _LABEL.fullmatch(name) and _LABEL.fullmatch(namespace)
    except UNREADABLE:
        return ""
    return f"{address} {name}.{search(namespace)[0]}\n" if address and named else ""
