"""A node's files of network definitions: each one that the cluster has, as a whole, and no other."""

from __future__ import annotations

import json
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from edge.devices.definitions import DEFINITION as KIND
from edge.devices.definitions import Keeper, Renewal, definition_text, forward_text
from edge.devices.picture import DEFINITIONS, DEPLOYMENTS
from edge.devices.rendering import FORWARD
from edge.http import AwayError, Server
from edge.log import Logger
from edge.watch import Changed, Listed, list_all
from tests.thesis import DEFINITION
from tests.unit.edge.devices.test_operator import Api
from tests.unit.edge.stub import serving


def named(name: str, namespace: str = "default", **spec: Any) -> dict[str, Any]:
    return {**DEFINITION, "metadata": {"name": name, "namespace": namespace, "uid": "1"}, "spec": spec}


def files(directory: Path) -> set[str]:
    return {str(one.relative_to(directory)) for one in directory.rglob("*")}


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    return Keeper(tmp_path / "definitions", definition_text)


def test_a_list_is_all_that_there_is(keeper: Keeper, tmp_path: Path) -> None:
    at = tmp_path / "definitions"
    keeper.put(Listed(DEFINITIONS, [DEFINITION, named("a", "lab")]))
    assert files(at) == {"default", "default/bridge-conf.json", "lab", "lab/a.json"}
    kept = json.loads((at / "default/bridge-conf.json").read_text())
    assert (kept["spec"], kept["metadata"]) == (DEFINITION["spec"], DEFINITION["metadata"])
    keeper.put(Listed(DEFINITIONS, [named("a", "lab")]))
    assert files(at) == {"lab", "lab/a.json"}
    keeper.put(Listed(DEFINITIONS, []))
    assert files(at) == set()


def test_one_that_changes_or_goes_is_another_file_or_none(keeper: Keeper, tmp_path: Path) -> None:
    path = tmp_path / "definitions/default/a.json"
    keeper.put(Changed(DEFINITIONS, named("a", config="1"), False))
    first = path.stat().st_ino
    keeper.put(Changed(DEFINITIONS, named("a", config="1"), False))
    assert path.stat().st_ino == first  # as it was
    keeper.put(Changed(DEFINITIONS, named("a", config="2"), False))
    assert json.loads(path.read_text())["spec"] == {"config": "2"}
    keeper.put(Changed(DEFINITIONS, named("a"), True))
    keeper.put(Changed(DEFINITIONS, named("a"), True))
    assert not path.parent.exists()


@pytest.mark.parametrize(
    ("name", "namespace"), [("../a", "default"), ("a", ".."), ("", "default"), ("A", "b")]
)
def test_no_name_leads_elsewhere(keeper: Keeper, tmp_path: Path, name: str, namespace: str) -> None:
    with pytest.raises(OSError, match="not the name of an object"):
        keeper.put(Changed(DEFINITIONS, named(name, namespace), False))
    assert files(tmp_path) == set()


def test_while_the_api_is_away_files_stay_and_without_the_kind_there_are_none(
    keeper: Keeper, tmp_path: Path
) -> None:
    at, api = tmp_path / "definitions", Api()
    path = f"{DEFINITIONS.rpartition('/')[0]}/namespaces/default/network-attachment-definitions"
    with serving(api), closing(Server(api.url)) as server:
        api.do("POST", path, named("a"))
        list_all(server, KIND, keeper.put)
        assert files(at) == {"default", "default/a.json"}
        api.do("DELETE", f"{path}/a")
        api.fault = lambda *_: 503
        with pytest.raises(AwayError):
            list_all(server, KIND, keeper.put)
        assert files(at) == {"default", "default/a.json"}
        api.fault = lambda *_: None
        api.kinds.remove(DEFINITIONS)
        list_all(server, KIND, keeper.put)
        assert files(at) == set()


def test_the_plugin_is_told_of_changes_alone_until_it_has_heard(tmp_path: Path) -> None:
    root, told = tmp_path / "node", tmp_path / "told"
    root.mkdir()
    plugin = root / "plugin"
    renewal = Renewal("/", str(plugin), tmp_path, Logger(StringIO()))
    assert renewal.told() == ""  # there is none
    plugin.write_text(
        f'#!/bin/sh\necho $CNI_COMMAND >>"{told}"\n[ -e "{root}/ready" ] || {{ echo no >&2; exit 1; }}\n'
    )
    plugin.chmod(0o755)
    assert renewal.told() == "no"
    (root / "ready").touch()
    assert renewal.told() == ""
    assert told.read_text() == "RENEW\nRENEW\n"
    heard: list[int] = []
    keeper = Keeper(tmp_path / "forwards", forward_text, lambda: heard.append(1))
    listed = named("dop-cam")
    listed["metadata"]["annotations"] = {FORWARD: "[]"}
    for news in (Listed(DEPLOYMENTS, [listed, named("b")]), Changed(DEPLOYMENTS, listed, False)):
        keeper.put(news)
    assert (files(tmp_path / "forwards"), heard) == ({"default", "default/dop-cam.json"}, [1])
    keeper.put(Listed(DEPLOYMENTS, []))
    assert (files(tmp_path / "forwards"), heard) == (set(), [1, 1])
