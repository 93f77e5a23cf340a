"""Requests: the commands of client and server, and what is read of the times that the client leaves.

Both are Python programs that run in the pods' networks, from their nodes, so that the pods' images need
nothing for it. They are given as text on the command line, for a node may not have our files.
"""

from __future__ import annotations

import csv
import io
import json
import math
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.generators.generator import Exchange, Exchanger, RawDataError
from testbed.scenario import Requests, texts
from testbed.scenario.addressing import Addressing

PYTHON = "/usr/bin/python3"
PATIENCE_SECONDS = 5.0  # an answer that takes longer counts as lost
HERE = Path(__file__).parent
COLUMNS = ["due_s", "sent_s", "answered_s", "status", "round_trip_s"]
ANSWERED = "answered"
MOST_BYTES = 2**29  # of text: more than the most exchanges that a scenario may ask for
GZIP = 16 + zlib.MAX_WBITS  # zlib's word for a stream with gzip's header
ROUNDING = 2e-7  # times have seven decimals


class RequestsTool(Exchanger):
    """Exchanges by TCP or UDP, each sent when it is due."""

    name = "requests"
    programs = (PYTHON,)
    suffix = "csv.gz"
    in_pods = False
    waits = True

    def suffix_of(self, role: str) -> str:
        """Return how the file with one side's output ends: the server's has its counts."""
        return "json" if role == "receiver" else self.suffix

    def receiver(self, addressing: Addressing, requests: Requests) -> list[str]:
        """Return the command of the server."""
        wishes = _wishes(addressing, requests)
        return _command("server", wishes)

    def sender(self, addressing: Addressing, requests: Requests, address: str) -> list[str]:
        """Return the command of the client."""
        wishes = {**_wishes(addressing, requests), **_pace(requests)}
        return _command("client", {**wishes, "address": address, "port": addressing.port_for(requests)})

    def echo(self, requests: Requests, address: str) -> list[str]:
        """Return the command of the client that asks the kernel."""
        told = {"protocol": "icmp", "port": 0, "connections": "kept", "size": 0}
        return _command("client", {**told, **_pace(requests), "address": address})

    def read_exchanges(self, file: Path, count: int) -> list[Exchange]:
        """Return the exchanges in the client's output. Raises RawDataError for what it would not write."""
        text = _unpacked(file)
        if not text.startswith("# "):
            raise RawDataError(f"not the times of requests; it begins {text[:40]!r}")
        rows = csv.reader(io.StringIO(text.partition("\n")[2]))
        try:
            if next(rows, None) != COLUMNS:
                raise RawDataError(f"the columns are not {','.join(COLUMNS)}")
            found = [_exchange(row) for row in rows]
        except (ValueError, csv.Error) as error:
            raise RawDataError(f"not the times of requests: {error}") from None
        if len(found) != count:
            raise RawDataError(f"{len(found)} exchanges of {count}")
        if any(later.due_s <= one.due_s for one, later in pairwise(found)):
            raise RawDataError("the exchanges are not in the order in which they were due")
        return found

    def read_count(self, file: Path) -> int:
        """Return how many requests a server has seen. Raises RawDataError for what it would not write."""
        try:
            return int(json.loads(texts.read_bytes(file))["requests"])
        except texts.TextError as error:
            raise RawDataError(str(error)) from None
        except (ValueError, TypeError, KeyError) as error:
            raise RawDataError(f"not the counts of a server: {error!r}") from None

    def complaint(self, output: Path, errors: Path) -> str | None:
        """Return the last words on standard error; an empty line there says only that it is ready."""
        said = errors.read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line for line in reversed(said) if line.strip()), None)


def _wishes(addressing: Addressing, requests: Requests) -> dict[str, Any]:
    return {
        "protocol": requests.protocol,
        "port": addressing.port_of(requests),
        "size": requests.size,
        "answer": requests.answer,
        "connections": requests.connections,
        "congestion": addressing.scenario.measurement.congestion_control,
        "served": requests.destination in addressing.scenario.services,
    }


def _pace(requests: Requests) -> dict[str, Any]:
    return {"rate": requests.rate, "count": requests.count, "patience": PATIENCE_SECONDS}


def _command(program: str, wishes: dict[str, Any]) -> list[str]:
    text = (HERE / f"{program}.py").read_text(encoding="utf-8")
    return [PYTHON, "-IS", "-c", text, json.dumps(wishes)]


def _unpacked(file: Path) -> str:
    """Return the text in a file that gzip can read, of at most ``MOST_BYTES``. Raises RawDataError."""
    try:
        content = texts.read_bytes(file)
        unpacking = zlib.decompressobj(GZIP)
        text = unpacking.decompress(content, MOST_BYTES)
    except texts.TextError as error:
        raise RawDataError(str(error)) from None
    except zlib.error as error:
        raise RawDataError(f"not a file of gzip: {error}") from None
    if not unpacking.eof:
        raise RawDataError("it is cut off" if content else "the file is empty")
    try:
        return text.decode("ascii")
    except UnicodeDecodeError:
        raise RawDataError("not the times of requests: no plain text") from None


def _exchange(row: list[str]) -> Exchange:
    """Return what a line says. Raises ValueError for what cannot have happened."""
    due, sent, answered, status, round_trip = row
    one = Exchange(
        due_s=float(due),
        sent_s=float(sent),
        answered_s=float(answered) if answered else None,
        status=status,
        round_trip_s=float(round_trip) if round_trip else None,
    )
    times = [time for time in (one.due_s, one.sent_s, one.answered_s, one.round_trip_s) if time is not None]
    if not all(math.isfinite(time) and time >= 0 for time in times):
        raise ValueError(f"a time that is none: {','.join(row)}")
    if one.sent_s < one.due_s - ROUNDING or (one.answered_s or one.sent_s) < one.sent_s - ROUNDING:
        raise ValueError(f"an answer before its request, or a request before it was due: {','.join(row)}")
    if (one.answered_s is not None) != (status in (ANSWERED, "late")) or not status.isalnum():
        raise ValueError(f"{status!r} is not what became of it: {','.join(row)}")
    return one
