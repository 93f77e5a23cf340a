"""What a box is made of, rendered and compared; building one is for tests/vm."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from testbed.supplies.box import building
from testbed.supplies.box.building import Recipe

RECIPE = Recipe(
    suite="bookworm", components=["main"], disk=20, packages=["sudo"], pins={"sudo": "1.9", "tar": "1.34"}
)


def test_the_recipe_pins_all_that_it_asks_for() -> None:
    ours = building.read_recipe()
    assert set(ours.packages) <= set(ours.pins)


OWN = """Debian|bookworm|http://mirror.lab/debian/
Debian|bookworm-updates|http://updates.lab/debian/
Debian|bookworm-security|http://mirror.lab/security/
Other|bookworm|http://other.lab/
"""


def test_this_machines_mirrors_are_taken() -> None:
    found = building.find_mirrors(RECIPE, OWN)
    assert building.package_sources(RECIPE, found).splitlines() == [
        f"deb [signed-by={building.KEYRING}] http://mirror.lab/debian/ bookworm main",
        f"deb [signed-by={building.KEYRING}] http://updates.lab/debian/ bookworm-updates main",
        f"deb [signed-by={building.KEYRING}] http://mirror.lab/security/ bookworm-security main",
    ]


def test_mirrors_that_are_named_go_before_this_machines() -> None:
    assert building.find_mirrors(RECIPE, OWN, "http://a/debian", "http://a/security") == {
        "bookworm": "http://a/debian",
        "bookworm-updates": "http://a/debian",
        "bookworm-security": "http://a/security",
    }
    assert (
        building.find_mirrors(RECIPE, OWN, "http://a/debian")["bookworm-security"]
        == "http://mirror.lab/security/"
    )
    assert building.find_mirrors(RECIPE, OWN, security="file:/a")["bookworm"] == "http://mirror.lab/debian/"


def test_updates_come_from_where_the_suite_does() -> None:
    without = OWN.replace("Debian|bookworm-updates", "Other|bookworm-updates")
    assert building.find_mirrors(RECIPE, without)["bookworm-updates"] == "http://mirror.lab/debian/"


@pytest.mark.parametrize(
    ("own", "mirror", "said"),
    [
        (
            "",
            "",
            r"no bookworm and no bookworm-security of Debian; name a mirror: --mirror URL --security URL$",
        ),
        ("", "http://a/debian", r"no bookworm-security of Debian; name a mirror: --security URL$"),
        ("Ubuntu|noble|http://b/\n", "http://a/debian", r"name a mirror: --security URL$"),
        ("Debian|bookworm-security|http://b/\n", "", r"no bookworm of Debian; name a mirror: --mirror URL$"),
    ],
)
def test_without_a_mirror_it_is_said_which_to_name(own: str, mirror: str, said: str) -> None:
    with pytest.raises(LookupError, match=said):
        building.find_mirrors(RECIPE, own, mirror)


@pytest.mark.parametrize("url", ["mirror.lab", "http://a b/", "http://a/\ndeb http://b/ x main", "http:"])
def test_what_is_no_url_is_no_mirror(url: str) -> None:
    with pytest.raises(LookupError, match="--mirror: must be the URL of a mirror"):
        building.find_mirrors(RECIPE, OWN, url)
    with pytest.raises(LookupError, match="--security: must be the URL of a mirror"):
        building.find_mirrors(RECIPE, OWN, security=url)


def test_a_box_keeps_the_sources_it_was_built_from_and_nobodys_password() -> None:
    built = building.package_sources(
        RECIPE, building.find_mirrors(RECIPE, OWN, "https://ada:secret@a.lab/debian")
    )
    assert "ada:secret@a.lab" in built
    assert building.without_passwords(built) == built.replace("ada:secret@", "")
    own = building.package_sources(RECIPE, building.find_mirrors(RECIPE, OWN))
    assert building.without_passwords(own) == own


def test_without_a_mirror_nothing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in (*building.TOOLS, "apt-get"):
        (programs / tool).symlink_to("/bin/true")
    monkeypatch.setattr(building, "PATH", str(programs))
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(building, "MBR", programs / "apt-get")
    with pytest.raises(LookupError, match="name a mirror: --mirror URL --security URL"):
        building.build(tmp_path / "to", "12.0", False, lambda _: None)
    assert not (tmp_path / "to").exists()


def test_pins_are_preferences_that_go_before_anything_newer() -> None:
    assert building.preferences({"sudo": "1.9"}) == "Package: sudo\nPin: version 1.9\nPin-Priority: 1001\n"


def test_other_packages_than_the_pinned_ones_are_named() -> None:
    building.check_pins(RECIPE, {"sudo": "1.9", "tar": "1.34"})
    with pytest.raises(LookupError) as caught:
        building.check_pins(RECIPE, {"sudo": "2.0", "zip": "3.0"})
    for words in (
        "sudo 2.0 (pinned: 1.9)",
        "tar missing (pinned: 1.34)",
        "zip 3.0 (pinned: not at all)",
        "--upgrade",
    ):
        assert words in str(caught.value)


def test_new_pins_leave_the_rest_of_the_recipe_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "debian.yaml"
    shutil.copy(building.FILE, file)
    building.write_pins({"tar": "1.34+dfsg", "sudo": "1:1.9"}, file)
    before, after = (each.read_text().partition("\npins:") for each in (building.FILE, file))
    assert after[0] == before[0]
    assert building.read_recipe(file).pins == {"sudo": "1:1.9", "tar": "1.34+dfsg"}


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
    with pytest.raises(LookupError, match=r"--version: must be numbers, as in 12.0.1, not 'new'"):
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
