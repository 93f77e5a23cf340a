"""The program: keeps on its node, a file each, what pods name of which the CNI plugin needs the content.

``/usr/bin/python3 -IS PATH/edge networks --api URL``. Of each NetworkAttachmentDefinition there is
``definitions/NAMESPACE/NAME.json``, of what a Connection's pods forward ``forwards/NAMESPACE/NAME.json``. So
nobody asks the API when a pod is attached. A file is there as a whole or not at all. While the API is away
they stay as they are. When what is forwarded changes, the plugin is told, for pods that run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from edge.access import access_of, add_options, work_with
from edge.devices.picture import DEFINITIONS, DEPLOYMENTS
from edge.devices.rendering import FORWARD, OF_CONNECTION
from edge.http import AwayError, Json, Server
from edge.log import Logger
from edge.watch import Kind, Listed, News, follow, list_all

DIRECTORY, PROGRAM = "/run/concorde-networks", "/opt/cni/bin/concorde-networks"
DEFINITION, FORWARDS = Kind(DEFINITIONS, optional=True), Kind(DEPLOYMENTS, labels=OF_CONNECTION)
RETRY_SECONDS, RENEW_SECONDS = 1.0, 30.0
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}")


def main(arguments: Sequence[str]) -> int:
    """Run until a signal ends it: 0; or return 2 for options that cannot be."""
    log = Logger(sys.stderr)
    told = parse(arguments)

    def work(server: Server, stop: threading.Event) -> int:
        keep(told, server, stop, log)
        return 0

    return work_with(lambda: access_of(told).server(4), work, log)


def keep(told: argparse.Namespace, server: Server, stop: threading.Event, log: Logger) -> None:
    """Have on the node what the cluster says, until the event is set."""
    renewal = Renewal(told.root, told.program, told.directory, log)
    renewal.want()  # whoever was killed may not have come to it
    directory = Path(told.root, *told.directory.parts[1:])
    kept = {
        DEFINITION: Keeper(directory / "definitions", definition_text),
        FORWARDS: Keeper(directory / "forwards", forward_text, renewal.want),
    }
    for kind, keeper in kept.items():
        threading.Thread(target=follow, args=(server, kind, keeper.put, log), daemon=True).start()
    threading.Thread(target=renewal.run, daemon=True).start()
    stop.wait()
    # Where all of this is being removed, the kinds are gone before it, and then so are the files.
    for kind, keeper in kept.items():
        with suppress(AwayError, OSError):
            list_all(server, kind, keeper.put)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return what arguments say; what cannot be ends the program with status 2 and a word on it."""
    parser = argparse.ArgumentParser(
        prog="edge networks", description="Keep what the CNI plugin concorde-networks asks for as files."
    )
    add_options(parser)
    add = parser.add_argument
    add("--directory", metavar="PATH", default=DIRECTORY, type=Path, help="where, on the node (%(default)s)")
    add("--root", metavar="PATH", default="/", help="where the node's root directory is (%(default)s)")
    add(
        "--program",
        metavar="PATH",
        default=os.environ.get("CNI_PLUGIN", PROGRAM),
        help="the plugin, on the node (%(default)s)",
    )
    return parser.parse_args(arguments)


class Renewal:
    """Tells the plugin, where the node's root is, that lists have changed; again until it has heard."""

    def __init__(self, root: str, program: str, directory: Path, log: Logger) -> None:
        self._root, self._program, self._log = root, program, log
        self._environment = {
            "CNI_COMMAND": "RENEW",
            "CONCORDE_NETWORKS": str(directory),
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        }
        self._wanted = threading.Event()

    def want(self) -> None:
        """Have it told, soon."""
        self._wanted.set()

    def run(self) -> None:
        """Tell it each time that somebody wants that."""
        while self._wanted.wait():
            self._wanted.clear()
            if problem := self.told():
                self._log.once(f"{self._program}: {problem}")
                threading.Timer(RETRY_SECONDS, self.want).start()

    def told(self) -> str:
        """Tell it once; return what went wrong."""
        # It may be a link, which leads elsewhere here.
        if not os.path.lexists(Path(self._root, self._program.lstrip("/"))):
            return ""  # no pod here is attached by it
        enter = ["chroot", self._root] if self._root != "/" else []
        try:
            done = subprocess.run(
                [*enter, self._program],
                env=self._environment, capture_output=True, text=True, timeout=RENEW_SECONDS, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return done.stderr.strip()[:400] or f"ended with status {done.returncode}" if done.returncode else ""


class Keeper:
    """Makes a directory's files what is heard; ``text_of`` an object is what its file has, or there is none.

    ``changed`` is called after files have changed.
    """

    def __init__(
        self, directory: Path, text_of: Callable[[Json], str], changed: Callable[[], None] = lambda: None
    ) -> None:
        self._directory, self._text_of, self._changed = directory, text_of, changed
        self._lock = threading.Lock()

    def put(self, news: News) -> None:
        """Take what is news. Raises OSError."""
        with self._lock:
            if isinstance(news, Listed):
                wanted = {self._path(one): self._text_of(one) for one in news.objects}
                gone = dict.fromkeys(set(self._directory.glob("*/*.json")) - wanted.keys(), "")
                texts = {**gone, **wanted}
            else:
                text = "" if news.gone else self._text_of(news.document)
                texts = {self._path(news.document): text}
            changes = [_write(path, text) if text else _remove(path) for path, text in texts.items()]
            if any(changes):
                self._changed()

    def _path(self, document: Json) -> Path:
        """Return where an object is kept. Raises OSError for names that no API has."""
        metadata = document["metadata"]
        names = (str(metadata.get("namespace")), str(metadata.get("name")))
        if not all(map(_NAME.fullmatch, names)):
            raise OSError(f"not the name of an object: {'/'.join(names)[:100]}")
        return self._directory / names[0] / f"{names[1]}.json"


def definition_text(document: Json) -> str:
    """Return what is kept of a NetworkAttachmentDefinition."""
    metadata = {key: document["metadata"][key] for key in ("name", "namespace")}
    kept = {key: document[key] for key in ("apiVersion", "kind", "spec") if key in document}
    return json.dumps({**kept, "metadata": metadata}, sort_keys=True)


def forward_text(document: Json) -> str:
    """Return what the pods of a Deployment forward; empty if they forward nothing."""
    return str((document["metadata"].get("annotations") or {}).get(FORWARD, ""))


def _write(path: Path, text: str) -> bool:
    """Write a file; return whether it was another before."""
    with suppress(OSError):
        if path.read_text(encoding="utf-8") == text:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.unfinished")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
    return True


def _remove(path: Path) -> bool:
    """Remove a file; return whether it was there."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    with suppress(OSError):  # others are in it
        path.parent.rmdir()
    return True
