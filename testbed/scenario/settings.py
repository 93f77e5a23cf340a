"""What a scenario sets of parts: ``settings.KIND.NAME.FIELD``, parsed by the model that the part brings.

Which parts there are, from outside or not, is known by their registries (testbed.registry).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from testbed.registry import KINDS
from testbed.scenario.faults import Fault, Path, ScenarioError, explained, listed, meant, unknown
from testbed.scenario.words import Part

FIELD = "settings"  # of a scenario
Said = dict[str, dict[str, Part]]


def read(said: object, file: str = "") -> Said:
    """Return settings as their parts' models have them. Raises ScenarioError, naming every fault."""
    found: Said = {}
    faults: list[Fault] = []
    for kind, parts in _mapping(said, (FIELD,), faults):
        if kind not in KINDS:
            faults.append(Fault((FIELD, kind), unknown("kind", kind, sorted(KINDS)) + meant(kind, KINDS)))
            continue
        having = dict(KINDS[kind].having())
        for name, values in _mapping(parts, (FIELD, kind), faults):
            at = (FIELD, kind, name)
            if name not in having:
                words = f"no {KINDS[kind].kind} {name!r} that has settings (there are: {listed(having)})"
                faults.append(Fault(at, words + meant(name, having)))
                continue
            try:
                found.setdefault(kind, {})[name] = type(having[name]).model_validate(values)
            except ValidationError as error:
                faults += [_placed(fault, at, type(having[name])) for fault in explained(error)]
    if faults:
        raise ScenarioError(file, faults)
    return found


def fields() -> Iterator[tuple[str, object, str]]:
    """Yield every setting that there is: its path in a scenario, its default, and what it means."""
    for kind, registry in KINDS.items():
        for name, own in registry.having():
            for field, info in type(own).model_fields.items():
                yield f"{FIELD}.{kind}.{name}.{field}", getattr(own, field), info.description or ""


def _mapping(said: object, at: Path, faults: list[Fault]) -> Iterator[tuple[str, Any]]:
    if isinstance(said, dict):
        return ((str(key), value) for key, value in said.items())
    faults.append(Fault(at, "input should be a mapping, as in {name: value}"))
    return iter(())


def _placed(fault: Fault, at: Path, model: type[Part]) -> Fault:
    """Return a fault of a part's settings with its place in the scenario, and the field that was meant."""
    close = meant(str(fault.path[0]), model.model_fields) if fault.message == "no such field" else ""
    return Fault((*at, *fault.path), f"{fault.message}{close}")
