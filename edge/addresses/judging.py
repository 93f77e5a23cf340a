"""What this webhook's API servers are told: what is wrong with a config beside those that there are.

Without it nothing is lost: the controller says by status and event what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edge.addresses import admission
from edge.addresses.admission import Surroundings
from edge.addresses.books import ONE_FAMILY, READY, Held, Rules, judged
from edge.addresses.cluster import CONFIGS
from edge.http import AwayError, Json, Question, RefusedError, Server
from edge.log import Logger

API_SECONDS = 1.0  # of what is asked of the API meanwhile: the webhook's own time-out is short
# From 1.21 on a server keeps two blocks a node unless it is told otherwise (feature gate IPv6DualStack).
BOTH_FROM = (1, 21)


class Judge:
    """Answers by what the API has, and by what the controller goes by."""

    def __init__(self, rules: Rules, server: Server, log: Logger) -> None:
        self._rules, self._server, self._log = rules, server, log

    def answer(self, asked: Json) -> Json:
        """Return the answer to an AdmissionReview. Raises UnfitError."""
        return admission.review(asked, self._surroundings)

    def _surroundings(self) -> Surroundings:
        """Return what there is beside a new config; if the API does not say so, nothing is refused for it."""
        try:
            others = [judged(kind, one) for kind in CONFIGS for one in self._listed(kind)]
            version = self._server.ask(Question("GET", "/version", seconds=API_SECONDS))
        except AwayError as error:
            self._log.once(f"webhook: a config was judged by itself alone: {error}")
            return Surroundings([], self._rules)
        return Surroundings(others, self._rules, keeps_both(version, others))

    def _listed(self, kind: str) -> Sequence[Json]:
        try:
            listed = self._server.ask(Question("GET", kind, seconds=API_SECONDS))
        except RefusedError as error:
            if error.status != 404:
                raise
            return []
        return listed.get("items") or []


def keeps_both(version: Json, configs: Sequence[Held]) -> bool:
    """Whether a server surely keeps two families a node: it has shown it, or its version says so."""
    of_both = [one.document for one in configs if one.config and len(one.config.ranges) == 2]
    statuses = [document.get("status") or {} for document in of_both]
    if any(status.get("given") for status in statuses):
        return True
    said = [one for status in statuses for one in status.get("conditions") or () if one.get("type") == READY]
    if any(one.get("reason") == ONE_FAMILY for one in said):
        return False
    numbers = [re.match(r"\d+", str(version.get(part, ""))) for part in ("major", "minor")]
    return tuple(int(one[0]) if one else 0 for one in numbers) >= BOTH_FROM
