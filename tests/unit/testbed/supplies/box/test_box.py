"""What a box is made of, rendered and compared; building one is for tests/vm."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from testbed.supplies.box import building, recipe
from testbed.supplies.box.recipe import Recipe

RECIPE = Recipe(
    suite="bookworm", components=["main"], disk=20, packages=["sudo"], pins={"sudo": "1.9", "tar": "1.34"}
)


def test_the_recipe_pins_all_that_it_asks_for() -> None:
    ours = recipe.read()
    assert set(ours.packages) <= set(ours.pins)


def test_this_machines_mirrors_are_taken_and_debians_where_there_are_none() -> None:
    told = "Debian|bookworm|http://mirror.lab/debian/\nOther|bookworm-updates|http://other.lab/\n"
    assert recipe.sources(RECIPE, told).splitlines() == [
        f"deb [signed-by={recipe.KEYRING}] http://mirror.lab/debian/ bookworm main",
        f"deb [signed-by={recipe.KEYRING}] {recipe.MIRROR} bookworm-updates main",
        f"deb [signed-by={recipe.KEYRING}] {recipe.SECURITY} bookworm-security main",
    ]


def test_a_box_has_debians_own_mirrors() -> None:
    assert [line.split()[2:] for line in recipe.sources(RECIPE).splitlines()] == [
        [recipe.MIRROR, "bookworm", "main"],
        [recipe.MIRROR, "bookworm-updates", "main"],
        [recipe.SECURITY, "bookworm-security", "main"],
    ]


def test_pins_are_preferences_that_go_before_anything_newer() -> None:
    assert recipe.preferences({"sudo": "1.9"}) == "Package: sudo\nPin: version 1.9\nPin-Priority: 1001\n"


def test_other_packages_than_the_pinned_ones_are_named() -> None:
    recipe.check(RECIPE, {"sudo": "1.9", "tar": "1.34"})
    with pytest.raises(LookupError) as caught:
        recipe.check(RECIPE, {"sudo": "2.0", "zip": "3.0"})
    for words in (
        "sudo 2.0 (pinned: 1.9)",
        "tar missing (pinned: 1.34)",
        "zip 3.0 (pinned: not at all)",
        "--upgrade",
    ):
        assert words in str(caught.value)


def test_new_pins_leave_the_rest_of_the_recipe_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "debian.yaml"
    shutil.copy(recipe.FILE, file)
    recipe.write_pins({"tar": "1.34+dfsg", "sudo": "1:1.9"}, file)
    before, after = (each.read_text().partition("\npins:") for each in (recipe.FILE, file))
    assert after[0] == before[0]
    assert recipe.read(file).pins == {"sudo": "1:1.9", "tar": "1.34+dfsg"}


def test_the_catalogue_leads_to_the_box(tmp_path: Path) -> None:
    box = tmp_path / "a.box"
    box.write_bytes(b"box")
    (version,) = json.loads(building.catalogue(box, "12.0.1"))["versions"]
    assert version["version"] == "12.0.1"
    assert version["providers"] == [
        {
            "name": "libvirt",
            "url": f"file://{tmp_path}/a.box",
            "checksum_type": "sha256",
            "checksum": hashlib.sha256(b"box").hexdigest(),
        }
    ]


def test_a_version_that_is_none_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="--version: 'new' is no version of a box"):
        building.build(tmp_path / "to", "new", False, lambda _: None)
    assert not (tmp_path / "to").exists()
    assert re.fullmatch(building.VERSION, building.of_today())


def test_programs_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "PATH", str(tmp_path))
    with pytest.raises(LookupError, match="apt-get install mmdebstrap fdisk dosfstools"):
        building.build(tmp_path / "to", "12.0", False, lambda _: None)


def test_the_partitions_are_where_the_file_systems_are_written() -> None:
    first, second = re.findall(r"start=(\d+)", building.partitions())
    size = int(re.findall(r"size=(\d+)", building.partitions())[0])
    assert int(first) + size == int(second) == building.ROOT_START
