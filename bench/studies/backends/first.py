"""The first exchanges with what was not talked to before."""

from __future__ import annotations

from collections.abc import Iterable

from bench.studies.backends.index import First
from bench.studies.backends.records import Exchange, Exchanges
from bench.studies.backends.spread import percentile


def firsts(rounds: Iterable[Exchanges]) -> list[First]:
    """Return the percentiles of each kind, over all rounds of one backend."""
    all_of_them = [one for each in rounds for one in each.exchanges]
    kinds = dict.fromkeys(one.kind for one in all_of_them)
    return [first for kind in kinds if (first := _first([one for one in all_of_them if one.kind == kind]))]


def _first(exchanges: list[Exchange]) -> First | None:
    took = [one.ns for one in exchanges if one.ns is not None]
    if not took:
        return None
    return First(
        kind=exchanges[0].kind,
        p50_ns=percentile(took, 0.5),
        p95_ns=percentile(took, 0.95),
        count=len(exchanges),
        failed=len(exchanges) - len(took),
    )
