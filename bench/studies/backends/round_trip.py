"""What a request takes on an idle way: from when it was sent to its answer.

What a user waits for counts from when a request was due, in a report as in a verdict. Here nothing else is
under way, no request waits for the one before, and what is asked is the way's own share; how late the
generator was stands beside it.
"""

from __future__ import annotations

from bench.analysis import exchanges
from bench.analysis.exchanges import ANSWERED
from bench.analysis.phases import QUIET
from bench.recording.directory import Recording
from bench.studies.backends.index import RoundTrip
from bench.studies.backends.spread import percentile


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
