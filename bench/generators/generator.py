"""What a traffic tool must be able to do to be a scenario's generator, and what is read of its output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from testbed.scenario import Requests, Traffic, Transfer
from testbed.scenario.addressing import Addressing
from testbed.scenario.words import Part


class RawDataError(ValueError):
    """Raw output that holds no measurement; the message says why, in the tool's own words if it gave any."""


class Record(NamedTuple):
    """One reporting interval of one side of one transfer, all streams together."""

    start_s: float  # seconds since the transfer's beginning
    end_s: float
    bytes: int  # payload
    bits_per_second: float  # payload, over the interval's real length
    window_bps: float | None = None  # what TCP would have sent at once, per round trip; None: not known
    exchange_s: float | None = None  # median of the exchanges that ended in it; None: it timed none
    retransmits: int | None = None  # segments that were sent again; None: not known, as at a receiver
    round_trip_s: float | None = None  # TCP's own, smoothed, at its end; None: not known, as at a receiver


class Tool(ABC):
    """What both kinds of traffic tools have in common: a receiver, and a sender that it serves.

    The receiver listens on the transfer's port, serves one sender, and ends with it. Both sides write a
    report of their own to standard output.
    """

    name: str  # what a scenario calls it
    programs: Sequence[str]  # what it needs where it runs, as names or paths
    suffix: str = "json"  # of the files with its output: <transfer>.receiver.json
    # It runs in the pods; else in their networks, by programs of the pods' nodes.
    in_pods: bool = True
    # Its sender itself says by an empty line among its errors that it is ready, and waits for a line.
    waits: bool = False
    # Its own, where a scenario says nothing; in what is asked to start something, or to read, as it says.
    settings: Part | None = None

    def suffix_of(self, role: str) -> str:
        """Return how the file with one side's output ends; ``role`` is ``receiver`` or ``sender``."""
        return self.suffix

    def file_name(self, slug: str, role: str) -> str:
        """Return what the file with one side's output is called."""
        return f"{slug}.{role}.{self.suffix_of(role)}"

    @abstractmethod
    def complaint(self, output: Path, errors: Path) -> str | None:
        """Return what one side said went wrong, in its output or on standard error; None if nothing did."""

    def ready(self, addressing: Addressing, transfer: Transfer) -> list[str]:
        """Return a command that says something, in the receiver's network, once the receiver is ready.

        Here it is the kernel that says that somebody listens on the port by TCP.
        """
        return ["ss", "-Hltn", f"sport = :{addressing.port_of(transfer)}"]


class Generator(Tool):
    """A tool that makes flows and disturbances: what counts is how much of them arrives, when.

    Both sides' reports have a record for each interval.
    """

    # What its numbers may be compared with. What a generator does not claim is not compared.
    #
    # It sends full packets, as fast as it may, so that what arrives can be held against a guarantee.
    saturates: bool = False
    # Its sender's bytes are payload too, as its receiver's are.
    sender_counts_payload: bool = False
    # Bytes that a sample must hold, or what is written at once, and what TCP sends again, makes it jump.
    fewest_sample_bytes: int = 0

    @abstractmethod
    def receiver(self, addressing: Addressing, traffic: Traffic, interval: float) -> list[str]:
        """Return the command of a transfer's receiver; ``interval`` is in seconds."""

    @abstractmethod
    def sender(self, addressing: Addressing, traffic: Traffic, address: str, interval: float) -> list[str]:
        """Return the command of a transfer's sender, which begins at once; ``address`` is the receiver's."""

    @abstractmethod
    def read_records(self, file: Path) -> list[Record]:
        """Return the records in one side's output, in order of time; at least one. Raises RawDataError."""

    def most_bytes(self, traffic: Traffic, interval: float) -> int:
        """Return how many bytes of output one side of a transfer has at most; 0: that is not known.

        ``interval`` is in seconds. What has more than can be read (testbed.scenario.texts) is refused before
        it is started.
        """
        return 0

    def faults(self, traffic: Traffic) -> Iterable[tuple[str, str]]:
        """Return what it cannot do of what a transfer asks for: the field, and what would be right."""
        return ()


class Exchange(NamedTuple):
    """One request and its answer; times in seconds since the first was due."""

    due_s: float
    sent_s: float  # later than it was due by the generator's own lateness
    answered_s: float | None  # None: there was no answer
    status: str  # answered; late: after more seconds than one waits; lost; or the name of a system's error
    round_trip_s: float | None  # TCP's own, smoothed, when the answer came; None: not known


class Exchanger(Tool):
    """A tool that makes requests: what counts is how long each exchange takes, and whether it ends.

    What is sent to a service has several receivers, none of which knows its sender. Each ends with its
    standard input then, and says how many requests it has seen.
    """

    @abstractmethod
    def receiver(self, addressing: Addressing, requests: Requests) -> list[str]:
        """Return the command of what answers."""

    @abstractmethod
    def sender(self, addressing: Addressing, requests: Requests, address: str) -> list[str]:
        """Return the command of what asks; ``address`` is the receiver's, or a service's."""

    @abstractmethod
    def echo(self, requests: Requests, address: str) -> list[str]:
        """Return the command of what asks the kernel at ``address``, as ping does, and writes the same."""

    @abstractmethod
    def read_exchanges(self, file: Path, count: int) -> list[Exchange]:
        """Return the ``count`` exchanges in a sender's output, as they were due. Raises RawDataError."""

    def read_count(self, file: Path) -> int:
        """Return how many requests a receiver's output says that it has seen. Raises RawDataError."""
        raise RawDataError(f"generator {self.name!r} does not say how many requests a receiver has seen")

    def faults(self, requests: Requests) -> Iterable[tuple[str, str]]:
        """Return what it cannot do of what requests ask for: the field, and what would be right."""
        return ()


def idle_sample(requests: Requests) -> Requests:
    """Return what is asked where nothing else is under way: requests as they are, for a second.

    Fewer in a second would not tell a median, more would not leave the path idle.
    """
    rate = min(1000, max(50, requests.rate))
    return requests.model_copy(update={"rate": rate, "start": 0.0, "duration": 1})
