"""What a traffic tool must be able to do to be a scenario's generator, and what is read of its output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from testbed.scenario import Traffic
from testbed.scenario.addressing import Addressing


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


class Generator(ABC):
    """One traffic tool: a receiver and a sender that run in pods, and a reader of what they leave.

    The receiver listens on the transfer's port, serves one sender, and ends with it. Both sides write a
    report of their own to standard output, with a record for each interval.
    """

    name: str  # what a scenario calls it
    programs: Sequence[str]  # what it needs where it runs, as names or paths
    suffix: str = "json"  # of the files with its output: <transfer>.receiver.json

    # What its numbers may be compared with. What a generator does not claim is not compared.
    #
    # It sends full packets, as fast as it may, so that what arrives can be held against a guarantee.
    saturates: bool = False
    # Its sender's bytes are payload too, as its receiver's are.
    sender_counts_payload: bool = False

    @abstractmethod
    def receiver(self, addressing: Addressing, traffic: Traffic, interval: float) -> list[str]:
        """Return the command of a transfer's receiver; ``interval`` is in seconds."""

    @abstractmethod
    def sender(self, addressing: Addressing, traffic: Traffic, address: str, interval: float) -> list[str]:
        """Return the command of a transfer's sender, which begins at once; ``address`` is the receiver's."""

    @abstractmethod
    def read_records(self, file: Path) -> list[Record]:
        """Return the records in one side's output, in order of time; at least one. Raises RawDataError."""

    @abstractmethod
    def complaint(self, output: Path, errors: Path) -> str | None:
        """Return what one side said went wrong, in its output or on standard error; None if nothing did."""

    def ready(self, addressing: Addressing, traffic: Traffic) -> list[str]:
        """Return a command that says something, where the receiver runs, once the receiver is ready.

        Here it is the kernel that says that somebody listens on the port by TCP.
        """
        return ["ss", "-Hltn", f"sport = :{addressing.port_of(traffic)}"]

    def faults(self, traffic: Traffic) -> Iterable[tuple[str, str]]:
        """Return what it cannot do of what a transfer asks for: the field, and what would be right."""
        return ()
