"""Can this machine tell? What a calibration beside the disturbances says of it, before the traffic.

Unshaped probes and the disturbances compete for the processors, and the kernel shares these fairly. So what
a probe gets is what its flow has at least. Flows that need less than that leave the rest to the others:
the margin of a flow is what it can have when all is shared out by max-min fairness ("water-filling";
Bertsekas and Gallager, *Data Networks*, 6.5.2), over what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bench.recording.records import Foreseen

SCALES = (1.0, 0.5, 0.2, 0.1)  # of the rates that were asked for

# The margin from which on a statement is expected, and the share of samples that has to have it.
MARGIN = 1.0
SAMPLES = 0.8


def foresee(
    needs: Mapping[str, float],
    samples: Sequence[Mapping[str, float]],
    others: int,
    filled: bool = False,
    fits: Callable[[float], bool] = lambda _scale: True,
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
        least = margins[int((1 - SAMPLES) * len(margins))] if margins else 0.0
        can_tell = fits(scale) and (filled or least >= MARGIN)
        found.append(Foreseen(scale=scale, margin=least, can_tell=can_tell))
    return found


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
