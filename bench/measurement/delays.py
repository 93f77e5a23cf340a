"""What the trunks of zones did to packets, and how late they were themselves, over one repetition."""

from __future__ import annotations

from collections.abc import Sequence

from bench.recording.records import Delayed, Fault
from testbed.access.place import in_parallel
from testbed.networks.trunks import Running


def begin(trunks: Sequence[Running]) -> list[Fault]:
    """Let every trunk count from now on; return a fault for each that does not answer."""
    return ask(trunks)[1]


def ask(trunks: Sequence[Running]) -> tuple[list[Delayed] | None, list[Fault]]:
    """Return what every trunk counted since it was asked last, and a fault for each that does not say.

    None if no trunk takes time.
    """
    told: list[Delayed] = []
    faults: list[Fault] = []
    for said in in_parallel(_asked, trunks):
        if isinstance(said, str):
            faults.append(Fault(kind="state", text=said))
        else:
            told += said
    return told or None, faults


def _asked(trunk: Running) -> list[Delayed] | str:
    try:
        said = trunk.delayed()
    except RuntimeError as error:
        return str(error)
    return [
        Delayed(
            zone=one.zone,
            out=one.out,
            means=one.means,
            delay_s=one.delay_s,
            **({} if one.counted is None else vars(one.counted)),
        )
        for one in said
    ]
