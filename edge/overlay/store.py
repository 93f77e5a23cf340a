"""Where nodes tell each other which subnets they have; one module a kind of store.

A store is asked in a thread of its own. It may be away: what was learned of it holds until it is back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from edge.overlay.leases import Lease


class AwayError(Exception):
    """A store does not answer, or not as it should; the message says how."""


class Store(Protocol):
    """The leases of one overlay, the own one among them."""

    def follow(self) -> Iterator[Sequence[Lease]]:
        """Keep the own lease in the store, and yield all leases, again at each change.

        Those that were written last stand at the end. It ends when it is time to ask for all of them anew:
        after a silence, or when the store has forgotten what changed since. Raises AwayError.
        """
