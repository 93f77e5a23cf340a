"""What one side of one iperf3 transfer reported: its records, or why there are none.

Only the fields that all iperf3 versions since 3.1 have in common are read. A record is one entry of
``intervals``.
"""

from __future__ import annotations

from typing import NamedTuple


class RawDataError(ValueError):
    """Raw output that holds no measurement; the message says why, in iperf3's own words if it gave any."""


class Record(NamedTuple):
    """One reporting interval of one transfer, all streams together."""

    start_s: float  # seconds since the transfer's beginning
    end_s: float
    bytes: int
    bits_per_second: float
    window_bps: float | None = None  # what TCP would have sent at once, per round trip; None: not known
