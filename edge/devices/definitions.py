"""The program: keeps a cluster's NetworkAttachmentDefinitions on its node, a file each: NAMESPACE/NAME.json.

``/usr/bin/python3 -IS PATH/edge networks --api URL``. So nobody asks the API when a pod is attached. A file
is there as a whole or not at all. While the API is away they stay as they are.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from edge.access import AccessError, access_of, add_options
from edge.devices.picture import DEFINITIONS
from edge.http import AwayError, Json
from edge.log import Logger
from edge.watch import Kind, Listed, News, follow, list_all

DIRECTORY = "/run/concorde-networks/definitions"
KIND = Kind(DEFINITIONS, optional=True)
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}")


def main(arguments: Sequence[str]) -> int:
    """Run until a signal ends it: 0; or return 2 for options that cannot be."""
    log = Logger(sys.stderr)
    parser = argparse.ArgumentParser(
        prog="edge networks", description="Keep NetworkAttachmentDefinitions as files."
    )
    add_options(parser)
    parser.add_argument(
        "--directory", metavar="PATH", default=DIRECTORY, type=Path, help="where (%(default)s)"
    )
    told = parser.parse_args(arguments)
    try:
        server = access_of(told).server(2)
    except AccessError as error:
        log(str(error))
        return 2
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    keeper = Keeper(told.directory)
    with closing(server):
        threading.Thread(target=follow, args=(server, KIND, keeper.put, log), daemon=True).start()
        stop.wait()
        # Where all of this is being removed, the kind is gone before it, and then so are the files.
        with suppress(AwayError, OSError):
            list_all(server, KIND, keeper.put)
    return 0


class Keeper:
    """Makes a directory's files what is heard."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._lock = directory, threading.Lock()

    def put(self, news: News) -> None:
        """Take what is news. Raises OSError."""
        with self._lock:
            if isinstance(news, Listed):
                wanted = {self._path(one): one for one in news.objects}
                for path in set(self._directory.glob("*/*.json")) - wanted.keys():
                    self._remove(path)
                for path, one in wanted.items():
                    self._write(path, one)
            elif news.gone:
                self._remove(self._path(news.document))
            else:
                self._write(self._path(news.document), news.document)

    def _path(self, document: Json) -> Path:
        """Return where a definition is kept. Raises OSError for names that no API has."""
        metadata = document["metadata"]
        names = (str(metadata.get("namespace")), str(metadata.get("name")))
        if not all(map(_NAME.fullmatch, names)):
            raise OSError(f"not the name of a definition: {'/'.join(names)[:100]}")
        return self._directory / names[0] / f"{names[1]}.json"

    def _write(self, path: Path, document: Json) -> None:
        metadata = {key: document["metadata"][key] for key in ("name", "namespace")}
        kept = {key: document[key] for key in ("apiVersion", "kind", "spec") if key in document}
        text = json.dumps({**kept, "metadata": metadata}, sort_keys=True)
        with suppress(OSError):
            if path.read_text(encoding="utf-8") == text:
                return
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.unfinished")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)

    def _remove(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            path.unlink()
        with suppress(OSError):  # others are in it
            path.parent.rmdir()
