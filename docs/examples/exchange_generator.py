"""A generator that times exchanges: how long a small message waits for its answer, whatever else flows.

It is one file outside the project. Whoever imports it can run scenarios with ``generator: exchange``, and
finds the times in the column ``exchange_s`` of the samples. What runs in the pods needs nothing but Python's
standard library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from bench.generators import Generator, RawDataError, Record, register
from testbed.scenario import Traffic
from testbed.scenario.addressing import Addressing
from testbed.scenario.words import Part

PYTHON = "/usr/bin/python3"

# Both ends: ``serve PORT INTERVAL``, or ``ask PORT INTERVAL ADDRESS SECONDS PAUSE``. Each writes a line of
# JSON for every interval. Nagle's algorithm (RFC 896) is off, for it would hold messages back.
PROGRAM = """
import json, socket, sys, time

SIZE = 64  # bytes of a message, and of its answer

def message(connection):
    data = connection.recv(SIZE, socket.MSG_WAITALL)
    return data if len(data) == SIZE else None

class Report:
    def __init__(self, interval):
        self.zero, self.interval = time.monotonic(), interval
        self.start, self.messages, self.times = 0.0, 0, []

    def now(self):
        return time.monotonic() - self.zero

    def add(self, seconds=None):
        while self.now() >= self.start + self.interval:
            self.write(self.start + self.interval)
        self.messages += 1
        if seconds is not None:
            self.times.append(seconds)

    def write(self, end):
        record = {"start": self.start, "end": end, "bytes": SIZE * self.messages}
        if self.times:
            record["exchange_s"] = sorted(self.times)[len(self.times) // 2]
        print(json.dumps(record), flush=True)
        self.start, self.messages, self.times = end, 0, []

def serve(port, interval):
    with socket.create_server(("", port)) as server:
        connection, _ = server.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    report = Report(interval)
    while data := message(connection):
        report.add()
        connection.sendall(data)
    report.write(report.now())

def ask(port, interval, address, seconds, pause):
    connection = socket.create_connection((address, port), timeout=10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    report = Report(interval)
    while (begun := report.now()) < seconds:
        connection.sendall(bytes(SIZE))
        if not message(connection):
            raise ConnectionError("the other end has gone")
        report.add(report.now() - begun)
        time.sleep(pause)
    report.write(report.now())

role, port, interval, *rest = sys.argv[1:]
try:
    if role == "serve":
        serve(int(port), float(interval))
    else:
        ask(int(port), float(interval), rest[0], float(rest[1]), float(rest[2]))
except OSError as error:
    print(json.dumps({"error": str(error)}))
"""


class Pause(Part):
    """A scenario's settings.generator.exchange."""

    pause: float = Field(
        0.002, ge=0, le=1, description="seconds from an answer to the next message, left to others"
    )


class Exchange(Generator):
    """One message after the other by TCP, each sent when the one before has its answer."""

    name = "exchange"
    programs = (PYTHON,)
    suffix = "jsonl"
    # Both ends count the messages' bytes. They fill no path, so no guarantee is held against them.
    sender_counts_payload = True
    settings = Pause()

    def receiver(self, addressing: Addressing, traffic: Traffic, interval: float) -> list[str]:
        """Return the command that answers."""
        return [PYTHON, "-IS", "-c", PROGRAM, "serve", str(addressing.port_of(traffic)), f"{interval:g}"]

    def sender(self, addressing: Addressing, traffic: Traffic, address: str, interval: float) -> list[str]:
        """Return the command that asks and takes the time."""
        port, seconds, pause = str(addressing.port_for(traffic)), str(traffic.duration), self.settings.pause
        return [PYTHON, "-IS", "-c", PROGRAM, "ask", port, f"{interval:g}", address, seconds, f"{pause:g}"]

    def faults(self, traffic: Traffic) -> Iterator[tuple[str, str]]:
        """Return what a transfer asks for beside one exchange after the other."""
        if traffic.protocol != "tcp":
            yield "protocol", "exchanges are by tcp"
        if traffic.parallel != 1:
            yield "parallel", "there is one exchange at a time"
        if traffic.rate is not None:
            yield "rate", "exchanges have no rate: the next begins soon after the last"

    def read_records(self, file: Path) -> list[Record]:
        """Return the records in one end's report. Raises RawDataError."""
        try:
            lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            errors = [line["error"] for line in lines if "error" in line]
            records = [_record(**line) for line in lines if "error" not in line]
        except (OSError, ValueError, TypeError, ArithmeticError) as error:
            raise RawDataError(f"not a report of exchanges: {error}") from None
        if errors or not records:
            raise RawDataError(errors[0] if errors else "no exchange was reported")
        return records

    def complaint(self, output: Path, errors: Path) -> str | None:
        """Return the last word on standard error where the report is none, or what is wrong with that."""
        try:
            self.read_records(output)
        except RawDataError as error:
            words = errors.read_text(encoding="utf-8", errors="replace").split("\n")
            return next((line for line in reversed(words) if line.strip()), str(error))
        return None


def _record(start: float, end: float, bytes: int, exchange_s: float | None = None) -> Record:
    return Record(start, end, bytes, bytes * 8 / (end - start), exchange_s=exchange_s)


register(Exchange())
