"""iperf3's command lines, and its own words when something went wrong."""

from __future__ import annotations

from pathlib import Path

from bench.accounting import block_size
from bench.records import RawDataError, decode
from testbed.networks.flannel import pod_mtu
from testbed.scenario import Scenario, Traffic

CONNECT_MILLISECONDS = 3000


def receiver(scenario: Scenario, traffic: Traffic, interval: float) -> list[str]:
    """Return the command of a transfer's receiver: a server for one client, with records of its own."""
    port = str(scenario.port_of(traffic))
    return ["iperf3", "--server", "--one-off", "--port", port, "--interval", f"{interval:g}", "--json"]


def sender(scenario: Scenario, traffic: Traffic, address: str, interval: float) -> list[str]:
    """Return the command of a transfer's sender.

    ``-l`` is chosen so that one write more or less does not show in a sample (see ``block_size``); ``-b`` is
    for each stream, so the offered load is divided among them.
    """
    rate = scenario.guarantee_of(traffic) or traffic.rate
    block = block_size(rate, interval, traffic.protocol, pod_mtu(scenario))
    command = [
        "iperf3", "--client", address, "--port", str(scenario.port_of(traffic)),
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


def complaint(output: Path, errors: Path) -> str | None:
    """Return what iperf3 said went wrong; None if nothing did.

    It says so in its JSON. Its standard error, which also has warnings, counts only where there is no JSON.
    """
    try:
        return decode(output.read_text(encoding="utf-8", errors="replace")).get("error")
    except (OSError, RawDataError):
        return errors.read_text(encoding="utf-8", errors="replace").strip() or "no report"
