"""Can this machine tell? What a calibration beside the disturbances says of it, before the traffic.

Two things keep a flow below its promise without a neighbour's help.

*Too little processor time.* Unshaped probes and the disturbances compete for the processors, which the
kernel shares out fairly. So what a probe gets is what its flow has at least; and what flows leave that need
less, the others share: max-min fairness ("water-filling"; Bertsekas and Gallager, *Data Networks*, 6.5.2). A
flow's margin is what it can have in this way, over what it needs.

*Pauses.* Where processors stand still again and again, as with a quota, a flow with a ceiling cannot make up
for that later. What arrives meanwhile is what TCP's buffers take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.recording.foreseen import SMALLER
from bench.recording.records import Foreseen

SCALES = (1.0, *SMALLER)  # of the rates that were asked for

# The margin from which on a statement is expected, and the share of samples that has to have it. On 2 cores
# all of 19 runs with 3.2 and more held; two with 2.5 and 2.8, beside six processes and more, said nothing:
# flows waited for a processor longer than what they have in their buffers lasts.
MARGIN = 3.0
SAMPLES = 0.8

# Pauses of less than this share of the time are accidents, of which nothing can be foreseen.
STILL = 0.1
# tcp(7): half of a receive buffer is TCP's window, the rest is for the kernel's own bookkeeping.
WINDOW_SHARE = 0.5


@dataclass(frozen=True)
class Pauses:
    """How a machine stood still beside the probes."""

    share: float  # of the time, of a processor
    mean_s: float
    buffer_bytes: int  # the most that TCP's receive buffer takes


NONE = Pauses(0.0, 0.0, 0)


def foresee(
    needs: Mapping[str, float],
    samples: Sequence[Mapping[str, float]],
    others: int,
    filled: bool = False,
    fits: Callable[[float], bool] = lambda _scale: True,
    pauses: Pauses = NONE,
) -> list[Foreseen]:
    """Return at which scales the machine can tell, the one asked for first.

    ``needs`` is the goodput that each flow must have at one time, ``samples`` what its path carried in each
    interval beside ``others``, streams that take what they get; both in bits per second. Links that were
    ``filled`` were the limit, and not the machine. ``fits`` tells whether a scale's promise is far enough
    from what the paths carry by themselves.
    """
    found = []
    for scale in SCALES:
        wanted = {flow: need * scale for flow, need in needs.items()}
        margins = sorted(margin(wanted, sample, others) for sample in samples)
        # The least of those that as many samples as must have.
        least = margins[len(margins) - math.ceil(SAMPLES * len(margins))] if margins else 0.0
        can_tell = fits(scale) and (filled or least >= MARGIN) and bridged(wanted, pauses)
        found.append(Foreseen(scale=scale, margin=least, can_tell=can_tell))
    return found


def bridged(needs: Mapping[str, float], pauses: Pauses) -> bool:
    """Tell whether TCP's buffers take what the flows need while the machine stands still."""
    window_bits = WINDOW_SHARE * pauses.buffer_bytes * 8
    return pauses.share < STILL or max(needs.values()) * pauses.mean_s <= window_bits


def margin(needs: Mapping[str, float], shares: Mapping[str, float], others: int) -> float:
    """Return what the flows can have, over what they need, of the flow that has least.

    ``shares`` is what each gets while all, ``others`` too, take as much as they get.
    """
    wanted = sorted(needs[flow] / shares[flow] if shares.get(flow) else float("inf") for flow in needs)
    room, left = float(len(wanted) + others), len(wanted) + others
    level = 1.0
    for want in wanted:  # those that want least first: they leave the most to the others
        level = room / left
        if want > level:
            break
        room, left = room - want, left - 1
    return level / wanted[-1]
