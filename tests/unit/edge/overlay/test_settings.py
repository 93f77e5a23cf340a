"""What a resolver is told, and what it does not take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edge.http import UnfitError
from edge.overlay import resolver
from edge.overlay.settings import UnsoundError, load, parse

SOUND: dict[str, Any] = {
    "device": "flannel.1",
    "network": "10.1.0.0/16",
    "subnet": "10.1.24.0/24",
    "address": "192.168.122.101",
    "l2": "miss",
    "l3": "miss",
    "store": "http://192.168.122.100:4001",
}


def test_what_is_not_said_has_a_default() -> None:
    found = parse(json.dumps(SOUND))
    assert (found.refresh, found.lifetime, found.vni, found.node) == ("ignore", 86_400, 1, "")
    assert found.generation == ("miss", "miss")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"l2": "never"}, "l2: must be miss or ahead, not 'never'"),
        ({"refresh": True}, "refresh: must be a string"),
        ({"lifetime": 0}, "lifetime: must be an integer from 1 to .*, not 0"),
        ({"lifetime": "1"}, "lifetime: must be an integer from 1 to .*, not 1"),
        ({"vni": True}, "vni: must be an integer from 1 to .*, not True"),
        ({"network": "10.1.0.0/99"}, "network: '10.1.0.0/99': "),
        ({"subnet": "10.2.1.0/24"}, "subnet: 10.2.1.0/24 is not within 10.1.0.0/16"),
        ({"speed": 5}, "speed: no such setting"),
    ],
)
def test_what_cannot_be_is_named(changed: dict[str, Any], words: str) -> None:
    with pytest.raises((UnsoundError, UnfitError), match=words):
        parse(json.dumps({**SOUND, **changed}))


@pytest.mark.parametrize("field", list(SOUND))
def test_what_is_missing_is_named(field: str) -> None:
    with pytest.raises(UnsoundError, match=f"{field}: required"):
        parse(json.dumps({name: value for name, value in SOUND.items() if name != field}))


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, "{"])
def test_what_is_no_object_is_none(text: str) -> None:
    with pytest.raises(UnfitError, match="the content is not"):
        parse(text)


def test_a_file_is_named_in_what_is_wrong_with_it(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UnsoundError, match=r"settings.json: device: required"):
        load(tmp_path / "settings.json")


def test_bad_settings_end_the_program_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert resolver.main([]) == 2
    assert resolver.main([str(tmp_path / "none.json")]) == 2
    assert "none.json: [Errno 2]" in capsys.readouterr().err
