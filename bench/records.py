"""What one side of one iperf3 transfer reported: its records, or why there are none.

Only the fields that all iperf3 versions since 3.1 have in common are read. A record is one entry of
``intervals``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from testbed import texts


class RawDataError(ValueError):
    """Raw output that holds no measurement; the message says why, in iperf3's own words if it gave any."""


class Record(NamedTuple):
    """One reporting interval of one transfer, all streams together."""

    start_s: float  # seconds since the transfer's beginning
    end_s: float
    bytes: int
    bits_per_second: float
    window_bps: float | None = None  # what TCP would have sent at once, per round trip; None: not known


def read_records(file: Path) -> list[Record]:
    """Return the records in one file of iperf3 output, in order of time.

    Raises RawDataError if the file is missing, empty or cut off, if iperf3 reported an error in it, and if it
    holds no record.
    """
    try:
        text = texts.read_bytes(file).decode("utf-8", errors="replace")
    except texts.TextError as error:
        raise RawDataError(str(error)) from None
    output = decode(text)
    if "error" in output:
        raise RawDataError(f"iperf3: {output['error']}")
    try:
        records = [
            _record(interval["streams"])
            for interval in output["intervals"]
            if not any(stream.get("omitted") for stream in interval["streams"])
        ]
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise RawDataError(f"not iperf3 output as known: {type(error).__name__} {error}") from None
    if not all(math.isfinite(number) for record in records for number in record if number is not None):
        raise RawDataError("not iperf3 output as known: a number without end")
    if not records:
        raise RawDataError("iperf3 finished without a single interval")
    return records


def decode(text: str) -> dict[str, Any]:
    """Return the first JSON document; some iperf3 3.16 and 3.17 print it twice (esnet/iperf#1716).

    Raises RawDataError if there is none.
    """
    text = text.lstrip()
    if not text:
        raise RawDataError("the file is empty: iperf3 ended without a report")
    try:
        output, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError) as error:
        raise RawDataError(f"not complete JSON ({error}); it begins {text[:60]!r}") from None
    if not isinstance(output, dict):
        raise RawDataError(f"not iperf3 output; it begins {text[:60]!r}")
    return output


def _record(streams: list[dict[str, Any]]) -> Record:
    """Sum parallel streams. The time is each stream's own, never the nominal interval (esnet/iperf#951)."""
    return Record(
        start_s=min(float(stream["start"]) for stream in streams),
        end_s=max(float(stream["end"]) for stream in streams),
        bytes=sum(int(stream["bytes"]) for stream in streams),
        bits_per_second=sum(
            float(stream["bytes"]) * 8 / float(stream["seconds"])
            for stream in streams
            if float(stream["seconds"]) > 0
        ),
        window_bps=_window(streams),
    )


def _window(streams: list[dict[str, Any]]) -> float | None:
    """Return the congestion windows over the round trips, bits per second, at the end of a sender's interval.

    A sender that uses its window sends at this rate (Little's law). None where TCP had lost something or
    iperf3 does not say: receivers, UDP, systems without TCP_INFO.
    """
    if any(stream.get("retransmits", 1) for stream in streams):
        return None
    if not all(stream.get("rtt") and "snd_cwnd" in stream for stream in streams):
        return None
    # rtt is in microseconds, snd_cwnd in bytes (iperf3's src/tcp_info.c).
    return sum(int(stream["snd_cwnd"]) * 8e6 / int(stream["rtt"]) for stream in streams)
