"""Does a pod with a rate get that rate, and never more?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from bench.studies.promise import protection
from bench.studies.promise.check import (
    MEASURED,
    Check,
    Evidence,
    Found,
    Ground,
    Judgement,
    Number,
    Ran,
    Run,
    Short,
    always,
    kept,
    register,
    together,
)
from bench.studies.promise.checks import goodput, measured
from bench.studies.promise.records import Rounds
from testbed.enforcements import enforcement
from testbed.scenario.goodput import expected_goodput_of
from testbed.scenario.units import format_bps, format_rate, format_share

TOWARDS = "towards"  # a flow, to a pod with a rate
# The second time each flow runs: what was saved up at the beginning is used by then.
FIRST, AGAIN = 0, 1
MOST_OF_LINK = 0.8
# 1 G beside six pods of 100 M, and room: on slower links that pod gets a quarter of the link.
ROOM_FOR_1G = 2.2e9
TCP = ("100M", "1M", "1G")
# Bytes of the largest offloaded packet (kernel: GSO_LEGACY_MAX_SIZE), which a bucket lets pass as a whole. At
# 1 Mbit/s it is half a second.
PACKET = 65_536
# Of what is expected, where it is only asked whose rate it is: neighbours' are ten times as much, or a tenth.
OWN = goodput.Band(0.5, 1.5)
HOW = "mean of the last seconds at the receiver: at least 0.9 and at most 1.05 of what is expected"


def _rates(ground: Ground) -> Mapping[str, Run]:
    """Return the one run that most checks look at."""
    if ground.link_bps >= ROOM_FOR_1G:
        return {"rates": Run("promise/rates")}
    quarter = format_rate(ground.link_bps // 4)
    settings = (f"pods.fast.guarantee={quarter}", f"pods.fast.ceiling={quarter}")
    return {"rates": Run("promise/rates", settings)}


def _most_of_link(ground: Ground) -> Mapping[str, Run]:
    """Return a run with one pod, whose rate hardly leaves room."""
    rate = format_rate(int(MOST_OF_LINK * ground.link_bps))
    return {"link": Run("promise/link", (f"pods.most.guarantee={rate}", f"pods.most.ceiling={rate}"))}


def _too_slow_for_1g(ground: Ground) -> str | None:
    if ground.link_bps >= ROOM_FOR_1G:
        return None
    return f"the links carry {format_bps(ground.link_bps)}, and this needs {format_bps(ROOM_FOR_1G)}"


def _between(*flows: str, band: goodput.Band = goodput.KEPT) -> Callable[[Evidence], Judgement]:
    """Return the rule that flows of the common run get what they shall."""
    wanted = [("rates", flow, AGAIN) for flow in flows]
    return lambda evidence: goodput.judge(evidence.runs, wanted, band)


def _alone(run: str, flow: str, evidence: Evidence) -> Judgement:
    """Return whether the one flow of a run got what it shall."""
    return goodput.judge(evidence.runs, [(run, flow, FIRST)])


def _first_second(evidence: Evidence) -> Judgement:
    """Return whether no flow began with more than its rate and the burst that is said."""
    numbers = [number for flow in TCP for number in _begun(evidence.runs["rates"], flow)]
    if len(numbers) < len(TCP):
        return Judgement("invalid", "not every flow was measured from its beginning")
    over = [number for number in numbers if not number.within]
    worst = max(over or numbers, key=lambda number: number.value / (number.most or 1))
    words = (
        f"{worst.name}: {format_bps(worst.value)} in the first second, at most "
        f"{format_bps(worst.most or 0)} with the burst"
    )
    return Judgement("violated" if over else "held", words, numbers)


def said_burst(rate_bps: float) -> float:
    """Return the bits that a class or bucket may save up: as plugins here are told, or tell of themselves.

    Where nobody says any, no more is allowed either.
    """
    return min(8.0 * enforcement.BURST, max(rate_bps * enforcement.BURST_MILLISECONDS / 1000, 40_000))


def _begun(ran: Ran, flow: str) -> list[Number]:
    """Return what arrived in a flow's first second, as a rate; nothing if it was not measured."""
    mine, one, found = ran.received(flow, FIRST), goodput.got(ran, flow, FIRST), ran.flow(flow)
    if mine.empty or one is None or found is None:
        return []
    begun = float(mine["start_s"].min())
    within = (mine["end_s"].clip(upper=begun + 1) - mine["start_s"]).clip(lower=0)
    bits = float((mine["bits_per_second"] * within).sum())
    burst = said_burst(found.guarantee_bps or one.expected_bps)
    most = goodput.MOST * one.expected_bps + burst + 8 * PACKET
    return [Number(flow, round(bits, 1), "bit/s", None, round(most, 1))]


def _units(evidence: Evidence) -> Judgement:
    """Return whether ``1G`` is nearest to 10^9 bits, and not to bytes, nor to 2^30."""
    judged = _between("1G")(evidence)
    one = goodput.got(evidence.runs["rates"], "1G", AGAIN)
    if one is None:
        return judged
    share = one.observed_bps / one.expected_bps
    meant = {"bits, by powers of 1000": 1.0, "bits, by powers of 1024": 2**30 / 1e9}
    meant |= {f"bytes{words[4:]}": 8 * factor for words, factor in meant.items()}
    nearest = min(meant, key=lambda words: abs(share / meant[words] - 1))
    numbers = [Number("share of what 1G means", round(share, 4), "share", goodput.LEAST, goodput.MOST)]
    if abs(share / meant[nearest] - 1) > 1 - goodput.LEAST:
        nearest = "no unit that anybody means"
    words = f"{format_share(share)} of what is expected: {nearest}"
    return Judgement(judged.found, words, numbers, judged.short)


def _ingress(evidence: Evidence) -> Judgement:
    """Return whether a pod receives its rate: what it lets through of a flow is as if it sent it."""
    scenario = evidence.runs["ingress"].scenario
    flow = next(one for one in scenario.flows if one.label == TOWARDS)
    back = flow.model_copy(update={"source": scenario.receivers_of(flow)[0], "destination": flow.source})
    expected = expected_goodput_of(scenario, back)
    return goodput.judge(evidence.runs, [("ingress", TOWARDS, FIRST)], expected_bps=expected)


def _kept_through(evidence: Evidence) -> Judgement:
    """Return whether a pod had its rate, and no more, in every round."""
    found: list[tuple[Found, str]] = []
    numbers, short = [], []
    for count, one in enumerate(kept(evidence, Rounds).rounds):
        shares = protection.shares(one.points, one.floor_bps, one.since_s, one.until_s)
        share = sum(shares) / len(shares)
        numbers.append(Number(one.name, round(share, 4), "share", goodput.LEAST, goodput.MOST))
        words = f"{one.name}: {format_share(share)} of what is expected"
        if one.faults:
            found.append(("violated", f"{words}; {one.faults[0]}"))
        elif share < goodput.LEAST and protection.excuses(one):
            found.append(("invalid", f"{words}; the machine had no time to spare"))
        elif numbers[-1].within:
            found.append(("held", words))
        else:
            found.append(("violated", words))
            short.append(Short(MEASURED, one.label, count, one.since_s, one.until_s))
    return together(found, numbers, short)


_check = partial(Check, profile="ceiling")
_flows = partial(_check, runs=_rates)  # of flows of the common run

register(
    _check(
        "rate-1m",
        "Does a pod with 1 Mbit/s get that, in the long run?",
        f"of 20 s: {HOW}",
        partial(_alone, "slow", "1M"),
        runs=always(slow="promise/slow"),
        threads=("UCY-LINC-LAB/fogify/issues/8",),
    ),
    _flows(
        "rate-100m",
        "Does a pod with 100 Mbit/s get that, in the long run?",
        HOW,
        _between("100M"),
        threads=("projectcalico/calico/issues/5007",),
    ),
    _flows(
        "rate-1g",
        "Does a pod with 1 Gbit/s get that, in the long run?",
        HOW,
        _between("1G"),
        lack=_too_slow_for_1g,
        threads=("containernetworking/plugins/issues/465",),
    ),
    _check(
        "rate-link",
        "Does a pod get 0.8 of its node's link?",
        HOW,
        partial(_alone, "link", "most of the link"),
        runs=_most_of_link,
    ),
    _flows(
        "first-second",
        "Does a flow begin without more than its rate and the burst that is said?",
        "what arrives in the first second of pods with 1 M, 100 M and 1 G: at most 1.05 of what is "
        "expected, 84 ms of the rate at up to 1 Gbit/s, at least 40 kbit, and one packet of 64 KiB",
        _first_second,
        threads=("kubernetes/kubernetes/issues/90838", "aws/amazon-vpc-cni-k8s/issues/1560"),
    ),
    _flows(
        "udp",
        "Is UDP limited as well, and gets its rate?",
        f"twice the rate is sent; {HOW}",
        _between("UDP"),
        threads=("containernetworking/plugins/issues/922", "kubeovn/kube-ovn/issues/5822"),
    ),
    _flows(
        "streams",
        "Do 16 streams of one pod get one pod's rate?",
        HOW,
        _between("16 streams"),
    ),
    _flows(
        "small-packets",
        "Does a pod that sends small packets get its rate?",
        f"datagrams of 512 bytes at 100 Mbit/s; {HOW}",
        _between("packets of 512 bytes"),
    ),
    _flows(
        "same-node",
        "Is what goes to a pod of the same node limited as well?",
        HOW,
        _between("same node"),
        threads=("cilium/cilium/issues/15824",),
    ),
    _check(
        "ingress",
        "Is what a pod receives limited as well?",
        HOW,
        _ingress,
        runs=always(ingress="promise/ingress"),
        lack=lambda ground: (
            None if "ingress" in ground.directions else "it says nothing of what a pod receives"
        ),
        threads=("cilium/cilium/issues/15636", "cilium/cilium/issues/16106"),
        direction="ingress",
    ),
    _flows(
        "units",
        "Is 1G 10^9 bits a second, and not bytes, nor 2^30?",
        f"pod with 1G: {HOW}",
        _units,
        threads=("aws/amazon-vpc-cni-k8s/issues/2280",),
    ),
    _flows(
        "own-rate",
        "Does each of several pods get its own rate, and not its neighbour's?",
        "pods of one node with 1 M, 100 M and 1 G at once; mean of the last seconds at the receiver: "
        "from 0.5 to 1.5 of what is expected, where neighbours' are ten times as much, or a tenth",
        _between(*TCP, band=OWN),
    ),
    _flows(
        "second-pod",
        "Is a pod still limited once others were added to its node?",
        f"the pod that was added first of eight; {HOW}",
        _between("100M"),
        threads=("projectcalico/calico/issues/8187",),
    ),
    _flows(
        "after-check",
        "Are pods still limited once the runtime has asked for CHECK?",
        f"the same flows again after CHECK; {HOW}",
        _between("100M", "16 streams", "same node"),
        lack=lambda ground: None if ground.asks_check else "nobody asks its plugins for CHECK here",
        threads=("projectcalico/calico/issues/8187",),
    ),
    _check(
        "after-restart",
        "Is a pod still limited once what runs on its node for pods' networks was restarted?",
        "containerd, kubelet and what joins the nodes; mean at the receiver before, after, and of a flow "
        "that begins then: at least 0.9 and at most 1.05 of what is expected",
        _kept_through,
        make=measured.restarted,
        seconds=35,
        lack=measured.lacks_agents,
        threads=("projectcalico/calico/issues/8187",),
    ),
)
