"""Runs of the study of services whose numbers are known: every endpoint gets just what is expected."""

from __future__ import annotations

from bench.recording.records import Delayed, Took
from bench.studies.services import situations
from bench.studies.services.index import Row, Services
from bench.studies.services.records import Asked, Run, Trunk
from bench.studies.services.results import summed_up
from bench.studies.services.situations import SERVICE, SITUATIONS, Situation, led_to, zone_of
from testbed.scenario.addressing import Addressing

REQUESTS = 6300
EACH_BYTES = 1000  # that leave a zone for a request that does
NEAR_S, FAR_S = 0.0004, 0.0404


def run(situation: Situation, mode: str, late: int = 0) -> Run:
    """Return a run in which nothing is left to chance; so many frames of 1,000 were 3 ms late."""
    scenario = situations.scenario(situation)
    addressing = Addressing(scenario)
    addresses = {pod: f"10.0.0.{number}" for number, pod in enumerate(scenario.pods, start=1)}
    told = situation.told._replace(modes={SERVICE: mode})
    used = {
        scenario.nodes[node].zone or "": pods for node, pods in led_to(addressing, addresses, told).items()
    }
    asked = [
        _asked(zone, round(REQUESTS * share), used[zone], scenario.services[SERVICE].pods)
        for zone, share in situation.shares.items()
        if share
    ]
    far = sum(sum(n for pod, n in one.answered.items() if zone_of(pod) != one.zone) for one in asked)
    p50 = FAR_S if far * 2 > REQUESTS else NEAR_S
    found = situations.hinted(addressing, addresses, told)
    return Run(
        case=situation.name,
        mode=mode,
        seconds=21,
        known_s=0.1,
        hinted=dict(sorted(found.hinted.items())),
        why_not=str(found.why_not) if found.why_not else None,
        used=used,
        asked=asked,
        took=Took(p50_s=p50, p99_s=FAR_S, max_s=FAR_S),
        trunks=[Trunk(zone="north", out_bytes=far * EACH_BYTES, in_bytes=far * EACH_BYTES)],
        delayed=[
            Delayed(
                zone="north",
                out=True,
                means="relay",
                delay_s=0.005,
                frames=1000,
                lateness=[*[0] * 8, 1000 - late, *[0] * 3, late],
            )
        ],
    )


def _asked(zone: str, count: int, used: list[str], pods: list[str]) -> Asked:
    each, rest = divmod(count, len(used))
    answered = {pod: each + (used.index(pod) < rest) if pod in used else 0 for pod in pods}
    took = Took(p50_s=NEAR_S, p99_s=FAR_S, max_s=FAR_S)
    return Asked(zone=zone, count=count, lost={}, took=took, late_p99_s=0.0001, answered=answered)


def study() -> Services:
    """Return the study that has all of them, and two promises."""
    runs = [run(situation, mode) for situation in SITUATIONS for mode in situation.modes]
    rows = [
        Row(case="promise-with-room", recording="one", verdict="held", attained=1.0),
        Row(case="promise-without-room", recording="two", verdict="violated", attained=0.75),
    ]
    return Services(rows=rows, results=summed_up(runs))
