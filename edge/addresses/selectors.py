"""Which nodes a config is for: what it asks of their labels, as Kubernetes' node selectors do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional

NOBODY = "is for no node, since an empty term of nodeSelectorTerms matches nothing"
NAME_FIELD = "metadata.name"  # the only field that Kubernetes lets a node selector ask for


def integer(text: str) -> Optional[int]:  # noqa: UP045 (nodes may have Python 3.9)
    """Return what Kubernetes reads as a number: decimal digits, 64 bits; None for all else, such as 1_000."""
    number = int(text) if re.fullmatch(r"[+-]?[0-9]{1,63}", text) else None
    return number if number is not None and -(1 << 63) <= number < 1 << 63 else None


class Requirement(NamedTuple):
    """What is asked of one label: a NodeSelectorRequirement."""

    key: str
    operator: str  # In, NotIn, Exists, DoesNotExist, Gt or Lt
    values: tuple[str, ...] = ()

    def is_met(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels has what is asked."""
        value = labels.get(self.key)
        if self.operator in ("In", "NotIn"):
            return (value in self.values) == (self.operator == "In")
        if self.operator in ("Exists", "DoesNotExist"):
            return (value is not None) == (self.operator == "Exists")
        number, limit = integer(value or ""), integer(self.values[0])
        if number is None or limit is None:
            return False
        return number > limit if self.operator == "Gt" else number < limit

    def example(self) -> dict[str, str]:
        """Return a label that meets it; none where its absence does."""
        if self.operator == "In":
            return {self.key: self.values[0]}
        if self.operator == "Exists":
            return {self.key: ""}
        step = {"Gt": 1, "Lt": -1}.get(self.operator)
        return {self.key: str(int(self.values[0]) + step)} if step else {}

    def __str__(self) -> str:
        """What is asked, as ``kubectl --selector`` takes it."""
        short = {"Exists": self.key, "DoesNotExist": f"!{self.key}"}
        compared = {"Gt": ">", "Lt": "<"}
        if self.operator in short:
            return short[self.operator]
        if self.operator in compared:
            return f"{self.key}{compared[self.operator]}{','.join(self.values)}"
        if self.operator == "In" and len(self.values) == 1:
            return f"{self.key}={self.values[0]}"
        return f"{self.key} {self.operator.lower()} ({','.join(sorted(self.values))})"


class Selector(NamedTuple):
    """Labels that a node must all have, and terms of which it must meet one, if there are any."""

    labels: tuple[Requirement, ...] = ()
    terms: tuple[tuple[Requirement, ...], ...] = ()

    def matched(self, labels: Mapping[str, str]) -> Optional[int]:  # noqa: UP045 (nodes may have Python 3.9)
        """Return how many requirements a node meets by its best term; None if it is none of these nodes.

        Terms are alternatives, as in Kubernetes' node affinity; its own allocator once asked for all of them
        (kubernetes#116419).
        """
        if not all(one.is_met(labels) for one in self.labels):
            return None
        met = [len(term) for term in self.terms if term and all(one.is_met(labels) for one in term)]
        if self.terms and not met:
            return None
        return len(self.labels) + max(met, default=0)

    @property
    def matches_nothing(self) -> bool:
        """Whether it is for no node at all: all its terms are empty, and an empty term matches nothing."""
        return bool(self.terms) and not any(self.terms)

    @property
    def alternatives(self) -> list[tuple[Requirement, ...]]:
        """Requirements of which a node must meet all, of one alternative at least."""
        return [(*self.labels, *term) for term in self.terms if term] if self.terms else [self.labels]

    def missing(self, labels: Mapping[str, str]) -> list[Requirement]:
        """Return what a node lacks: of the labels, and of the term that it is nearest to."""
        lacked = [one for one in self.labels if not one.is_met(labels)]
        terms = [[one for one in term if not one.is_met(labels)] for term in self.terms if term]
        return lacked + min(terms, key=len, default=[])

    def example(self) -> Optional[dict[str, str]]:  # noqa: UP045 (nodes may have Python 3.9)
        """Return the labels of a node that it is for, as few as there can be; None if none were found."""
        for term in self.terms or ((),):
            asked = (one.example() for one in (*self.labels, *term))
            labels = {key: value for found in asked for key, value in found.items()}
            if self.matched(labels) is not None:
                return labels
        return None

    def __str__(self) -> str:
        """The selector's text: requirements sorted, joined by commas; terms by " or "."""
        parts = [_text(self.labels)] if self.labels else []
        parts += sorted(_text(term) for term in self.terms if term)
        return " or ".join(parts)


class Index:
    """Selectors by values that they ask for: which of many match a node is found without asking each."""

    def __init__(self, selectors: Sequence[Selector]) -> None:
        self._selectors = selectors
        self._by_value: dict[str, dict[str, set[int]]] = {}  # of a key
        self._others: set[int] = set()  # of which an alternative asks for no value
        for number, selector in enumerate(selectors):
            wanted = [_wanted(one) for one in selector.alternatives]
            if None in wanted:
                self._others.add(number)
                continue
            for key, values in filter(None, wanted):
                for value in values:
                    self._by_value.setdefault(key, {}).setdefault(value, set()).add(number)

    def matched(self, labels: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
        """Return the selectors that match a node, each by its number, and how many requirements it meets."""
        found = self._others.union(
            *(values.get(labels.get(key, ""), ()) for key, values in self._by_value.items())
        )
        counts = ((number, self._selectors[number].matched(labels)) for number in sorted(found))
        return tuple((number, count) for number, count in counts if count is not None)


def _wanted(requirements: Sequence[Requirement]) -> Optional[tuple[str, tuple[str, ...]]]:  # noqa: UP045
    """Return a label of which a node must have one of these values."""
    return next(((one.key, one.values) for one in requirements if one.operator == "In"), None)


def _text(requirements: tuple[Requirement, ...]) -> str:
    return ",".join(sorted(map(str, requirements)))
