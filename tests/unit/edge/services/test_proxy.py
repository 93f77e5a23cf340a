"""What the proxy is told: its options, and services in a file."""

from __future__ import annotations

import io
import json
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from edge.log import Logger
from edge.services.proxy import File, parse
from edge.watch import Listed

NEEDED = ["--cluster", "a", "--services", "10.96.0.0/16"]


def test_options_are_read() -> None:
    told = parse(
        [*NEEDED, "--pods", "10.61.0.0/24", "--pods", "10.62.0.0/24", "--file", "x", "--zone", "north"]
    )
    assert told.pods == (IPv4Network("10.61.0.0/24"), IPv4Network("10.62.0.0/24"))
    assert (told.cluster, told.services, told.zone) == ("a", IPv4Network("10.96.0.0/16"), "north")
    assert parse([*NEEDED, "--leave"]).leave


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (NEEDED, "--api, --in-cluster or --file"),
        ([*NEEDED, "--file", "x", "--api", "http://127.0.0.1:1"], "--api, --in-cluster or --file"),
        (["--cluster", "a b", "--services", "10.96.0.0/16", "--leave"], "no name of letters"),
        (["--cluster", "a", "--services", "10.96.0.1/16", "--leave"], "has host bits set"),
    ],
)
def test_options_that_cannot_be_end_it(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_file_is_read_when_it_is_another(tmp_path: Path) -> None:
    path, log = tmp_path / "services.json", io.StringIO()
    file = File(path, Logger(log))
    assert file.look() == []

    def write(document: Any) -> None:
        path.with_suffix(".new").write_text(json.dumps(document))
        path.with_suffix(".new").rename(path)

    items = [{"kind": kind, "metadata": {"name": "web"}} for kind in ("Service", "EndpointSlice")]
    write({"items": items})
    services, slices = file.look()
    assert isinstance(services, Listed)
    assert isinstance(slices, Listed)
    assert services.objects == items[:1]
    assert slices.objects == items[1:]
    assert file.look() == []
    for bad, said in [
        ({}, "'items'"),
        ({"items": [{"kind": "Pod"}]}, "items[0].kind: must be Service or EndpointSlice"),
        ({"items": [{"kind": "Service"}]}, "items[0].metadata.name: required"),
        ([], "not a JSON object"),
    ]:
        write(bad)
        assert file.look() == []
        assert said in log.getvalue()
    write({"items": []})
    assert [news.objects for news in file.look() if isinstance(news, Listed)] == [[], []]
