"""Does a pod with a rate get that rate, and never more?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.studies.promise import protection
from bench.studies.promise.check import (
    MEASURED,
    About,
    Check,
    Evidence,
    Found,
    Ground,
    Judgement,
    Number,
    Ran,
    Run,
    Short,
    kept,
    register,
)
from bench.studies.promise.checks import goodput, measured
from bench.studies.promise.checks.measured import Measured
from bench.studies.promise.records import Rounds
from testbed.enforcements import enforcement
from testbed.scenario import Scenario
from testbed.scenario.goodput import expected_goodput_of
from testbed.scenario.quantities import format_rate
from testbed.scenario.units import format_bps, format_share

RATES = "promise/rates"
LINK = "promise/link"
SLOW = "promise/slow"
INGRESS, TOWARDS = "promise/ingress", "towards"
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
        return {"rates": Run(RATES)}
    quarter = format_rate(ground.link_bps // 4)
    return {"rates": Run(RATES, (f"pods.fast.guarantee={quarter}", f"pods.fast.ceiling={quarter}"))}


@dataclass(frozen=True)
class Rate(Check):
    """Flows of the common run."""

    about: About
    flows: Sequence[str]
    needs_bps: float = 0.0  # of the link
    band: goodput.Band | None = None  # without one, as everywhere

    def runs(self, ground: Ground) -> Mapping[str, Run]:
        """Return the common run."""
        return _rates(ground)

    def lack(self, ground: Ground) -> str | None:
        """Return that links are too slow."""
        if ground.link_bps >= self.needs_bps:
            return None
        return f"the links carry {format_bps(ground.link_bps)}, and this needs {format_bps(self.needs_bps)}"

    def judge(self, evidence: Evidence) -> Judgement:
        """Return whether each flow is in between."""
        return goodput.judge(evidence.runs, [("rates", flow, AGAIN) for flow in self.flows], self.band)


@dataclass(frozen=True)
class Slow(Check):
    """A rate at which single packets count."""

    about: About

    def runs(self, ground: Ground) -> Mapping[str, Run]:
        """Return a run with one pod."""
        return {"slow": Run(SLOW)}

    def judge(self, evidence: Evidence) -> Judgement:
        """Return whether it is in between."""
        return goodput.judge(evidence.runs, [("slow", "1M", FIRST)])


@dataclass(frozen=True)
class MostOfLink(Check):
    """A rate that hardly leaves room."""

    about: About

    def runs(self, ground: Ground) -> Mapping[str, Run]:
        """Return a run with one pod."""
        rate = format_rate(int(MOST_OF_LINK * ground.link_bps))
        return {"link": Run(LINK, (f"pods.most.guarantee={rate}", f"pods.most.ceiling={rate}"))}

    def judge(self, evidence: Evidence) -> Judgement:
        """Return whether it is in between."""
        return goodput.judge(evidence.runs, [("link", "most of the link", FIRST)])


@dataclass(frozen=True)
class FirstSecond(Check):
    """What is saved up before a flow begins."""

    about: About

    def runs(self, ground: Ground) -> Mapping[str, Run]:
        """Return the common run."""
        return _rates(ground)

    def judge(self, evidence: Evidence) -> Judgement:
        """Return whether no flow got more than its rate and the burst that is said."""
        ran = evidence.runs["rates"]
        if ran.recording is None:
            return Judgement("invalid", f"not run: {ran.reason}")
        numbers = [number for flow in TCP for number in _first_second(ran, flow)]
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


def _first_second(ran: Ran, flow: str) -> list[Number]:
    """Return what arrived in a flow's first second, as a rate; nothing if it was not measured."""
    table, one = ran.samples, goodput.got(ran, flow, FIRST)
    mine = table[(table["flow"] == flow) & (table["repetition"] == FIRST) & (table["source"] == "receiver")]
    if mine.empty or one is None:
        return []
    begun = float(mine["start_s"].min())
    within = (mine["end_s"].clip(upper=begun + 1) - mine["start_s"]).clip(lower=0)
    bits = float((mine["bits_per_second"] * within).sum())
    guarantee = next(f.guarantee_bps for f in ran.summary.flows if f.name == flow) or one.expected_bps
    most = goodput.MOST * one.expected_bps + said_burst(guarantee) + 8 * PACKET
    return [Number(flow, round(bits, 1), "bit/s", None, round(most, 1))]


@dataclass(frozen=True)
class Units(Check):
    """Whether ``1G`` is 10^9 bits, and not bytes, nor 2^30."""

    about: About

    def runs(self, ground: Ground) -> Mapping[str, Run]:
        """Return the common run."""
        return _rates(ground)

    def judge(self, evidence: Evidence) -> Judgement:
        """Return whether the flow is nearest to what is meant."""
        judged = goodput.judge(evidence.runs, [("rates", "1G", AGAIN)])
        ran = evidence.runs["rates"]
        one = goodput.got(ran, "1G", AGAIN) if ran.recording is not None else None
        if one is None:
            return judged
        share = one.observed_bps / one.expected_bps
        meant = {"bits, by powers of 1000": 1.0, "bits, by powers of 1024": 2**30 / 1e9}
        meant |= {f"bytes{words[4:]}": 8 * factor for words, factor in meant.items()}
        nearest = min(meant, key=lambda words: abs(share / meant[words] - 1))
        numbers = [Number("share of what 1G means", round(share, 4), "share", goodput.LEAST, goodput.MOST)]
        words = f"{format_share(share)} of what is expected: {nearest}"
        if abs(share / meant[nearest] - 1) > 1 - goodput.LEAST:
            words = f"{format_share(share)} of what is expected: no unit that anybody means"
        return Judgement(judged.found, words, numbers, judged.short)


@dataclass(frozen=True)
class Checked(Check):
    """Whether a limit is still there once the runtime has asked for CHECK."""

    about: About

    def runs(self, ground: Ground) -> Mapping[str, Run]:
        """Return the common run."""
        return _rates(ground)

    def lack(self, ground: Ground) -> str | None:
        """Return that nobody asks."""
        return None if ground.asks_check else "nobody asks its plugins for CHECK here"

    def judge(self, evidence: Evidence) -> Judgement:
        """Return whether the flows after it are in between."""
        flows = ("100M", "16 streams", "same node")
        return goodput.judge(evidence.runs, [("rates", flow, AGAIN) for flow in flows])


@dataclass(frozen=True)
class Ingress(Check):
    """What a pod receives."""

    about: About

    def runs(self, ground: Ground) -> Mapping[str, Run]:
        """Return a run of its own."""
        return {"ingress": Run(INGRESS)}

    def lack(self, ground: Ground) -> str | None:
        """Return that nothing is said of what comes in."""
        return None if "ingress" in ground.directions else "it says nothing of what a pod receives"

    def judge(self, evidence: Evidence) -> Judgement:
        """Return whether it is in between."""
        ran = evidence.runs["ingress"]
        expected = _received(ran.scenario, TOWARDS) if ran.recording is not None else None
        return goodput.judge(evidence.runs, [("ingress", TOWARDS, FIRST)], expected_bps=expected)


def _received(scenario: Scenario, label: str) -> float | None:
    """Return what a receiver's own rate lets through of a flow: as if it sent it."""
    flow = next(one for one in scenario.flows if one.label == label)
    back = flow.model_copy(update={"source": flow.destination, "destination": flow.source})
    return expected_goodput_of(scenario, back)


def kept_through(evidence: Evidence) -> Judgement:
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
    state = goodput.worst([each for each, _ in found])
    return Judgement(state, "; ".join(words for each, words in found if each == state), numbers, short)


_ISSUE = "https://github.com/{}/issues/{}"


def _about(name: str, asks: str, measured: str, *threads: tuple[str, int]) -> About:
    links = tuple(_ISSUE.format(repository, number) for repository, number in threads)
    return About(name, "ceiling", asks, measured, "ceiling", links)


for _check in (
    Slow(
        _about(
            "rate-1m",
            "Does a pod with 1 Mbit/s get that, in the long run?",
            f"of 20 s: {HOW}",
            ("UCY-LINC-LAB/fogify", 8),
        )
    ),
    Rate(
        _about(
            "rate-100m",
            "Does a pod with 100 Mbit/s get that, in the long run?",
            HOW,
            ("projectcalico/calico", 5007),
        ),
        ["100M"],
    ),
    Rate(
        _about(
            "rate-1g",
            "Does a pod with 1 Gbit/s get that, in the long run?",
            HOW,
            ("containernetworking/plugins", 465),
        ),
        ["1G"],
        ROOM_FOR_1G,
    ),
    MostOfLink(_about("rate-link", "Does a pod get 0.8 of its node's link?", HOW)),
    FirstSecond(
        _about(
            "first-second",
            "Does a flow begin without more than its rate and the burst that is said?",
            "what arrives in the first second of pods with 1 M, 100 M and 1 G: at most 1.05 of what is "
            "expected, 84 ms of the rate at up to 1 Gbit/s, at least 40 kbit, and one packet of 64 KiB",
            ("kubernetes/kubernetes", 90838),
            ("aws/amazon-vpc-cni-k8s", 1560),
        )
    ),
    Rate(
        _about(
            "udp",
            "Is UDP limited as well, and gets its rate?",
            f"twice the rate is sent; {HOW}",
            ("containernetworking/plugins", 922),
            ("kubeovn/kube-ovn", 5822),
        ),
        ["UDP"],
    ),
    Rate(_about("streams", "Do 16 streams of one pod get one pod's rate?", HOW), ["16 streams"]),
    Rate(
        _about(
            "small-packets",
            "Does a pod that sends small packets get its rate?",
            f"datagrams of 512 bytes at 100 Mbit/s; {HOW}",
        ),
        ["packets of 512 bytes"],
    ),
    Rate(
        _about(
            "same-node",
            "Is what goes to a pod of the same node limited as well?",
            HOW,
            ("cilium/cilium", 15824),
        ),
        ["same node"],
    ),
    Ingress(
        About(
            "ingress",
            "ceiling",
            "Is what a pod receives limited as well?",
            HOW,
            "ceiling",
            (_ISSUE.format("cilium/cilium", 15636), _ISSUE.format("cilium/cilium", 16106)),
            "ingress",
        )
    ),
    Units(
        _about(
            "units",
            "Is 1G 10^9 bits a second, and not bytes, nor 2^30?",
            f"pod with 1G: {HOW}",
            ("aws/amazon-vpc-cni-k8s", 2280),
        )
    ),
    Rate(
        _about(
            "own-rate",
            "Does each of several pods get its own rate, and not its neighbour's?",
            "pods of one node with 1 M, 100 M and 1 G at once; mean of the last seconds at the receiver: "
            "from 0.5 to 1.5 of what is expected, where neighbours' are ten times as much, or a tenth",
        ),
        TCP,
        band=OWN,
    ),
    Rate(
        _about(
            "second-pod",
            "Is a pod still limited once others were added to its node?",
            f"the pod that was added first of eight; {HOW}",
            ("projectcalico/calico", 8187),
        ),
        ["100M"],
    ),
    Checked(
        _about(
            "after-check",
            "Are pods still limited once the runtime has asked for CHECK?",
            f"the same flows again after CHECK; {HOW}",
            ("projectcalico/calico", 8187),
        )
    ),
    Measured(
        _about(
            "after-restart",
            "Is a pod still limited once what runs on its node for pods' networks was restarted?",
            "containerd, kubelet and what joins the nodes; mean at the receiver before, after, and of a flow "
            "that begins then: at least 0.9 and at most 1.05 of what is expected",
            ("projectcalico/calico", 8187),
        ),
        measured.restarted,
        kept_through,
        seconds=35,
        restarts=True,
    ),
):
    register(_check)
