"""How many processor seconds a kept Gbit took."""

from __future__ import annotations

from bench.analysis.summary import FlowSummary
from bench.recording import atomic
from bench.studies import surroundings
from bench.studies.promise.check import Ran

GIGABIT = 1e9
LEAST_BPS = 50e6  # with less than this, what processors do anyway is nearly all of it


def cpu_s_per_gbit(ran: Ran) -> float | None:
    """Return the processor seconds of the busiest machine for each Gbit that was promised and arrived.

    What arrived beyond a promise does not count; what it took does. Everything counts that the processors
    did: senders, receivers, the watching. None if too little was promised to tell, or it is not known.
    """
    assert ran.recording is not None
    host = surroundings.part(atomic.read_json(ran.recording.environment_file), "host")
    processors = host.get("processors_usable")
    record = ran.recording.run_record()
    busy = sum(use.busy * (use.end_s - use.start_s) for one in record.repetitions for use in one.cpu)
    watched = sum(use.end_s - use.start_s for one in record.repetitions for use in one.cpu)
    kept = sum(_kept(flow) for flow in ran.summary.flows)
    if not isinstance(processors, int) or not watched or kept < LEAST_BPS:
        return None
    return round(busy / watched * processors / (kept / GIGABIT), 3)


def _kept(flow: FlowSummary) -> float:
    """Return how much of what was promised to a flow arrived, bits per second."""
    phases = flow.phases.values()
    samples = sum(one.samples for one in phases)
    if not flow.expected_goodput_bps or not samples:
        return 0.0
    return min(sum(one.mean_bps * one.samples for one in phases) / samples, flow.expected_goodput_bps)
