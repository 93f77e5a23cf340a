"""What every enforcement is asked, and that one from outside needs no more than its module and its name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from concorde import configuration, enforcements, guarantees
from concorde.cni import NOT_AVAILABLE, CniError
from concorde.configuration import ENFORCEMENTS, Configuration
from concorde.enforcements import fabric, node, none, pod
from concorde.requests import Request
from concorde.verbs.status import status

from tests.paths import ROOT
from tests.unit.plugin.examples import annotated

if TYPE_CHECKING:
    from concorde.enforcements import Enforcement

# As a list of Enforcement, so that the types are compared.
OURS: dict[str, Enforcement] = {"pod": pod, "node": node, "none": none, "fabric": fabric}
LATER = """\
RESERVES = True
RECEIVES = False
TOOLS = ("no-such-tool",)
def on_uplink(network): return None
def absent(network): return ""
def install(network, lease, entry, netns): pass
def remove(network, lease, netns): pass
def check(network, lease, netns): pass
"""


def test_every_word_of_the_configuration_is_a_module() -> None:
    assert {name: enforcements.load(name) for name in ENFORCEMENTS} == OURS


def test_only_guarantees_of_two_are_kept_on_the_uplink_and_of_one_where_they_arrive() -> None:
    assert [name for name in ENFORCEMENTS if enforcements.load(name).RESERVES] == ["node", "fabric"]
    assert [name for name in ENFORCEMENTS if enforcements.load(name).RECEIVES] == ["fabric"]


@pytest.mark.parametrize(
    ("name", "loaded"),
    [
        ("none", {"none"}),
        ("pod", {"pod"}),
        ("node", {"node", "pod"}),
        ("fabric", {"fabric", "node", "pod"}),
    ],
)
def test_no_other_enforcement_is_loaded(name: str, loaded: set[str]) -> None:
    code = (
        "import sys; from concorde import enforcements; enforcements.load(sys.argv[1]);"
        " print(*(name for name in sys.modules if name.startswith('concorde.enforcements.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, name],
        env={"PYTHONPATH": f"{ROOT}/plugin:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) == {f"concorde.enforcements.{one}" for one in loaded}


def test_a_further_one_is_a_module_and_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "later.py").write_text(LATER)
    monkeypatch.setattr(enforcements, "__path__", [*enforcements.__path__, str(tmp_path)])
    monkeypatch.setattr(configuration, "ENFORCEMENTS", (*ENFORCEMENTS, "later"))
    document = {
        "cniVersion": "1.1.0",
        "name": "net",
        "subnet": "10.0.0.0/24",
        "stateDir": str(tmp_path / "state"),
        "enforcement": "later",
        **annotated(guarantee="1G", ceiling="2G"),
    }
    later = enforcements.load("later")
    found = guarantees.terms(Configuration(document), 1450, later.RESERVES, later.RECEIVES)
    assert (found.enforcement, found.guarantee, found.rate) == ("later", 10**9, 2 * 10**9)
    with pytest.raises(CniError, match="no-such-tool is not installed") as caught:
        status(Request(document, "", "", ""))
    assert caught.value.code == NOT_AVAILABLE
