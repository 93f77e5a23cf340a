"""Annotations and definitions that nobody should write: an error with its path, and never a traceback."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from concorde import pod_annotations
from concorde.cni import INVALID_CONFIGURATION, CniError
from concorde.networks import definitions, selection, translation
from concorde.networks.settings import Settings

from tests import cases

NETWORKS = [
    {"name": "a", "namespace": "n", "interface": "x", "ips": ["10.0.0.5/24"], "mac": "02:00:00:00:00:01"}
]
FORWARDS = [{"protocol": "UDP", "port": 5004, "address": "10.0.0.9", "targetPort": 50}]
DEFINITION = {"cniVersion": "0.3.1", "name": "x", "plugins": [{"type": "y", "capabilities": {"ips": True}}]}
PIECES = ['"', *"{}[],:", "null", "7", "-1", "1e999", "\\ud800", "\x00", "é", "[" * 2000, "true", ""]


@pytest.mark.long
def test_what_is_malformed_is_an_error_with_its_path(tmp_path: Path) -> None:
    """CONCORDE_MALFORMED says how many annotations, and how many definitions."""
    choice = random.Random(cases.seed())
    settings = Settings({"name": "x", "definitionsDir": str(tmp_path), "confDir": str(tmp_path)})
    (tmp_path / "default").mkdir()
    file = tmp_path / "default" / "a.json"
    found = []
    for _ in range(cases.count("CONCORDE_MALFORMED", 40, 10_000)):
        file.write_text(
            damaged(choice, json.dumps({"spec": {"config": damaged(choice, json.dumps(DEFINITION))}}))
        )
        annotation = damaged(choice, json.dumps(NETWORKS))
        found += [
            refusal(selection.NETWORKS, lambda text: selection.selected(text, "default", "eth0"), annotation),
            refusal(translation.FORWARD, translation.forwards, damaged(choice, json.dumps(FORWARDS))),
            refusal(str(file), lambda _: definitions.plugins(asked(), settings, "1.0.0", {}), ""),
        ]
    assert any(found)


def asked() -> selection.Selection:
    return selection.Selection("networks[0]", "default", "a", "net1")


def refusal(place: str, read: Callable[[str], object], text: str) -> bool:
    """Whether it is refused, and if so as it should be."""
    try:
        read(text)
    except CniError as error:
        problem = error
    else:
        return False
    begin = place if place.startswith("/") else pod_annotations.path(place)
    assert (problem.code, problem.msg.startswith(begin)) == (INVALID_CONFIGURATION, True), problem.msg
    assert problem.msg.removeprefix(begin).partition(": ")[2], problem.msg
    return True


def damaged(choice: random.Random, text: str) -> str:
    """A text with something put in, taken out, or in place of something else."""
    for _ in range(choice.randint(1, 3)):
        at = choice.randrange(len(text) + 1)
        text = text[:at] + choice.choice(PIECES) + text[at + choice.choice((0, 1, 1, 5, 30)) :]
    return text
