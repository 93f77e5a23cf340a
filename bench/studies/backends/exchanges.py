"""What exchanges take: the first ones with what was not talked to before, and requests on an idle datapath.

What a user waits for counts from when a request was due, in a report as in a verdict. Here nothing else is
under way, no request waits for the one before, and what is asked is the datapath's own share: it counts from
when the request was sent; how late the generator was stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable

from bench.analysis import exchanges
from bench.analysis.exchanges import ANSWERED
from bench.analysis.phases import QUIET
from bench.analysis.statistics import percentile
from bench.recording.directory import Recording
from bench.studies.backends.index import First, RoundTrip
from bench.studies.backends.records import Exchange, Exchanges


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


def round_trips(recording: Recording) -> list[RoundTrip]:
    """Return each kind of requests of a recording. Raises StoredError and ScenarioError."""
    scenario = recording.scenario()
    table = exchanges.read(recording, scenario, recording.run_record()).exchanges
    quiet = table[table["phase"] == QUIET]
    found = []
    for requests in scenario.requests:
        own = quiet[quiet["requests"] == requests.label]
        answered = own[own["status"] == ANSWERED]
        took = (answered["answered_s"] - answered["sent_s"]).tolist()
        late = (own["sent_s"] - own["due_s"]).tolist()
        found.append(
            RoundTrip(
                name=requests.label,
                p50_s=round(percentile(took, 0.5), exchanges.DIGITS) if took else None,
                p99_s=round(percentile(took, 0.99), exchanges.DIGITS) if took else None,
                late_p99_s=round(percentile(late, 0.99), exchanges.DIGITS) if late else None,
                lost=len(own) - len(answered),
                count=len(own),
            )
        )
    return found
