"""Enforcement node beyond the paper's experiment: idle capacity, its return, and 250 pods on one node.

* One pod alone on the link, beside the same flow without any shaping: how much of the link does it get?
* The others come back: after how many 100 ms samples do they have their floors again?
* 250 guaranteed pods of two clusters on one node, and a disturbance of four streams: the lowest mean.
* The link's whole throughput with 250 classes, beside that with three.

Needs an idle machine, and takes about two minutes.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rich.console import Console  # noqa: E402

from bench import pipeline  # noqa: E402
from bench.analysis.summary import Summary  # noqa: E402
from bench.console.progress import Display  # noqa: E402
from bench.measurement import experiment  # noqa: E402
from bench.recording.directory import Recording  # noqa: E402
from bench.recording.records import Request  # noqa: E402
from testbed.scenario import Scenario, load  # noqa: E402

CONGESTED = ROOT / "scenarios" / "congested.yaml"
ALONE = [
    "flows[1].start=5",
    "flows[1].duration=5",
    "flows[2].start=5",
    "flows[2].duration=5",
    "disturbances=[]",
]
SCALE = 0.5
PODS = 250
PROMISE = "3600k"


def borrowing(reports: Path) -> None:
    """One pod alone, then all three."""
    import pandas as pd

    unshaped, _ = run(load(CONGESTED, [*ALONE, "enforcement=none"], SCALE), reports)
    recording, summary = run(load(CONGESTED, ALONE, SCALE), reports)
    alone = [mean_alone(pd.read_parquet(each.samples_file)) for each in (recording, unshaped)]
    print(f"one pod alone: {alone[0] / 1e9:.3f} Gbit/s; without shaping {alone[1] / 1e9:.3f}")
    print(f"  share {alone[0] / alone[1]:.3f} (goal: at least 0.97)")
    samples = pd.read_parquet(recording.samples_file)
    for flow in summary.flows[1:]:
        rates = samples[(samples["flow"] == flow.name) & (samples["source"] == "receiver")]["bits_per_second"]
        assert flow.expected_goodput_bps is not None
        below = [n for n, rate in enumerate(rates) if rate < 0.9 * flow.expected_goodput_bps]
        when = (max(below) + 1) * 100 if below else 0
        print(
            f"  {flow.name} returns: at its floor from {when} ms on (goal: 200); {len(below)} samples below"
        )


def mean_alone(samples: Any) -> float:
    """Return the first flow's mean while it is alone, after its warm-up, bits per second."""
    own = samples[(samples["flow"] == samples["flow"].iloc[0]) & (samples["source"] == "receiver")]
    return float(own[(own["start_s"] >= 1.0) & (own["end_s"] <= 4.8)]["bits_per_second"].mean())


def crowd(reports: Path) -> None:
    """250 pods of two clusters on one node, and three for comparison, on links of 1 Gbit/s."""
    _, few = run(load(CONGESTED, ["underlay.rate=9G"], scale=1 / 9), reports)
    _, many = run(crowded(), reports)
    shares = sorted(
        sum(phase.mean_bps * phase.samples for phase in flow.phases.values())
        / sum(phase.samples for phase in flow.phases.values())
        / flow.expected_goodput_bps
        for flow in many.flows
        if flow.expected_goodput_bps and flow.phases
    )
    print(
        f"{PODS} pods: lowest mean {shares[0]:.3f} of expected (goal: at least 0.97), "
        f"median {shares[len(shares) // 2]:.3f}, {sum(share < 0.97 for share in shares)} below the goal"
    )
    why = "; ".join([*many.reasons, *many.notes][:3]) or "no reasons"
    print(f"  {len(shares)} measured; verdict {many.verdict}: {why}")
    totals = [total(few), total(many)]
    print(f"whole link: {totals[1] / 1e6:.0f} Mbit/s with {PODS} classes, {totals[0] / 1e6:.0f} with 3")
    print(f"  share {totals[1] / totals[0]:.3f} (goal: at least 0.95)")


def total(summary: Summary) -> float:
    """Return the payload that all transfers together received while disturbed, bits per second."""
    return sum(flow.phases["disturbed"].mean_bps for flow in summary.flows if "disturbed" in flow.phases)


def crowded() -> Scenario:
    """Return the congested scenario with many small pods instead of three large ones."""
    base = load(CONGESTED).model_dump(mode="json", by_alias=True, exclude_none=True)
    pods: dict[str, Any] = {
        f"sink-{cluster}": {"cluster": cluster, "node": "worker-02"} for cluster in ("a", "b")
    }
    flows = []
    for number in range(PODS):
        cluster = "ab"[number % 2]
        pods[f"P-{number}"] = {"cluster": cluster, "node": "worker-01", "guarantee": PROMISE}
        flows.append({"from": f"P-{number}", "to": f"sink-{cluster}", "duration": 10})
    for cluster in base["clusters"].values():
        cluster["node_prefix"] = 23
    base |= {"name": "crowded", "underlay": {"rate": "1G"}, "pods": pods, "flows": flows}
    base["disturbances"][0] |= {"start": 3, "duration": 5}
    # A tenth of a second of 3.6 Mbit/s is 30 frames, and 500 iperf3 that count them keep a processor busy.
    base["measurement"] = {"warm_up": 2, "interval": 1.0}
    base["thresholds"] = {"mean": 0.97, "sample": 0.5, "attainment": 0.95}
    return Scenario.model_validate(base)


def run(scenario: Scenario, reports: Path) -> tuple[Recording, Summary]:
    """Run one scenario and analyse it."""
    display = Display(Console(file=io.StringIO()), scenario.name)
    request = Request(scenario=scenario.name, reports=str(reports))
    recording = experiment.run(request, scenario, display)
    return recording, pipeline.analyse(recording)


def main(words: Sequence[str]) -> None:
    """Measure and print what is named on the command line, or everything."""
    with tempfile.TemporaryDirectory() as reports:
        for word in words:
            {"borrowing": borrowing, "crowd": crowd}[word](Path(reports))


if __name__ == "__main__":
    main(sys.argv[1:] or ["borrowing", "crowd"])
