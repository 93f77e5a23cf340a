"""Which of the words that there are was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that comes nearest; None if none comes near. Of equals the first wins."""
    return next(iter(get_close_matches(word, list(known), n=1)), None)
