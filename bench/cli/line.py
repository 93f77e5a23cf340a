"""What the command line asks of the program as a whole, beside a verb's own options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.cli.groups import Verbs


class Line:
    """Set once, before a verb is run."""

    dry = False  # --dry: nothing is to be done, but what would be may be said
    verbs: Verbs  # all that there are
    command: Sequence[str] = ()  # what a verb is to run somewhere, as exec does: word by word
