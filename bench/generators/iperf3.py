"""iperf3: its command lines, its reports, and its own words when something went wrong.

Only the fields that all iperf3 versions since 3.1 have in common are read. A record is one entry of
``intervals``.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from bench.generators.generator import Generator, RawDataError, Record
from testbed.scenario import Traffic, texts
from testbed.scenario.addressing import Addressing
from testbed.scenario.frames import Protocol, payload_bytes
from testbed.scenario.networks import path_of

CONNECT_MILLISECONDS = 3000
KIBIBYTE = 1024
SMALLEST_BLOCK = 1 * KIBIBYTE
LARGEST_BLOCK = 128 * KIBIBYTE  # iperf3's default for TCP
# Of its report, at most: of each stream in an interval, of their sum, of each stream's end, and of the rest.
# Measured with 3.12: 370, 250, 1,500 and 4,000; the longest numbers of an interval add 40.
STREAM_BYTES, SUM_BYTES, END_BYTES, OTHER_BYTES = 450, 300, 2_000, 8_000
# What printf(3) makes of numbers that are none, and no JSON has (esnet/iperf#278).
NO_NUMBER = re.compile(r"(?<=[\[:,\s])-?(?:nan|inf(?:inity)?)(?=[\],}\s])", re.IGNORECASE)
BLOCK_SHARE = 0.005  # one block more or less in an interval moves a sample by at most this share


class Iperf3(Generator):
    """Fills a path as far as it is let, or to a transfer's rate, by TCP or UDP."""

    name = "iperf3"
    programs = ("iperf3",)
    saturates = True
    sender_counts_payload = True
    fewest_sample_bytes = round(SMALLEST_BLOCK / BLOCK_SHARE)

    def receiver(self, addressing: Addressing, traffic: Traffic, interval: float) -> list[str]:
        """Return the command of a transfer's receiver: a server for one client, with records of its own."""
        port = str(addressing.port_of(traffic))
        return ["iperf3", "--server", "--one-off", "--port", port, "--interval", f"{interval:g}", "--json"]

    def sender(self, addressing: Addressing, traffic: Traffic, address: str, interval: float) -> list[str]:
        """Return the command of a transfer's sender.

        ``-l`` is chosen so that one write more or less does not show in a sample (see ``block_size``); ``-b``
        is for each stream, so the offered load is divided among them.
        """
        scenario = addressing.scenario
        rate = scenario.guarantee_of(traffic) or traffic.rate
        mtu = path_of(scenario, traffic.source)[0]
        block = traffic.size or block_size(rate, interval, traffic.protocol, mtu)
        command = [
            "iperf3", "--client", address, "--port", str(addressing.port_for(traffic)),
            "--time", str(traffic.duration), "--interval", f"{interval:g}", "--json",
            "--length", str(block), "--parallel", str(traffic.parallel),
            "--connect-timeout", str(CONNECT_MILLISECONDS),
        ]  # fmt: skip
        if traffic.protocol == "udp":
            command.append("--udp")
        else:
            command += ["--congestion", scenario.measurement.congestion_control]
        if traffic.protocol == "udp" or traffic.rate is not None:
            # For UDP 0 lifts iperf3's default of 1 Mbit/s.
            command += ["--bitrate", str((traffic.rate or 0) // traffic.parallel)]
        return command

    def most_bytes(self, traffic: Traffic, interval: float) -> int:
        """Return how many bytes of output one side of a transfer has at most."""
        each = traffic.parallel * STREAM_BYTES + SUM_BYTES
        return math.ceil(traffic.duration / interval) * each + traffic.parallel * END_BYTES + OTHER_BYTES

    def complaint(self, output: Path, errors: Path) -> str | None:
        """Return what iperf3 said went wrong; None if nothing did.

        It says so in its JSON. Its standard error, which also has warnings, counts only where there is no
        JSON.
        """
        try:
            return decode(output.read_text(encoding="utf-8", errors="replace")).get("error")
        except (OSError, RawDataError):
            return errors.read_text(encoding="utf-8", errors="replace").strip() or "no report"

    def read_records(self, file: Path) -> list[Record]:
        """Return the records in one file of iperf3 output, in order of time.

        Raises RawDataError if the file is missing, empty or cut off, if iperf3 reported an error in it, and
        if it holds no record.
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


def block_size(rate_bps: float | None, interval_s: float, protocol: Protocol = "tcp", mtu: int = 1450) -> int:
    """Return the bytes iperf3 should write at once (``-l``) to a flow of ``rate_bps``.

    A sample holds whole blocks, so a block is at most half a percent of what the rate carries in one
    interval, in whole KiB from 1 to 128 (one default block of 128 KiB in 100 ms is 10.5 Mbit/s,
    esnet/iperf#951). Without a rate it is the default. A UDP block is a datagram: what fits ``mtu``.
    """
    if protocol == "udp":
        return payload_bytes(mtu, "udp")
    if rate_bps is None:
        return LARGEST_BLOCK
    block = int(rate_bps * interval_s / 8 * BLOCK_SHARE) // KIBIBYTE * KIBIBYTE
    return min(LARGEST_BLOCK, max(SMALLEST_BLOCK, block))


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
        mended, count = NO_NUMBER.subn("null", text)
        if count:
            return decode(mended)
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
        # Exactly rounded: since Python 3.12 sum() rounds floats otherwise than before.
        bits_per_second=math.fsum(
            float(stream["bytes"]) * 8 / float(stream["seconds"])
            for stream in streams
            if float(stream["seconds"]) > 0
        ),
        window_bps=_window(streams),
        retransmits=_retransmits(streams),
        round_trip_s=_round_trip(streams),
    )


def _retransmits(streams: list[dict[str, Any]]) -> int | None:
    counts = [int(stream["retransmits"]) for stream in streams if "retransmits" in stream]
    return sum(counts) if counts else None


def _round_trip(streams: list[dict[str, Any]]) -> float | None:
    """Return TCP's own round trip, the mean of the streams'; None where a stream does not have one."""
    # In microseconds (iperf3's src/tcp_info.c); 0 where the system tells none.
    times = [int(stream.get("rtt", 0)) for stream in streams]
    return math.fsum(times) / len(times) / 1e6 if times and all(times) else None


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
    return math.fsum(int(stream["snd_cwnd"]) * 8e6 / int(stream["rtt"]) for stream in streams)
