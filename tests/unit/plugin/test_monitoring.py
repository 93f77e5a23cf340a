"""The dashboard and the alarms that are shipped ask for metrics that there are, by labels that they have."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from concorde import metrics
from concorde.metrics import COUNTER
from ruamel.yaml import YAML

from tests.paths import ROOT

MONITORING = ROOT / "plugin" / "deploy" / "monitoring"
NAME = re.compile(r"\bconcorde_[a-z_]+")
SELECTED = re.compile(r"\b(concorde_[a-z_]+)(?:\{([^}]*)\})?(\[\w+\])?")
SHOWN = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")
# What a scraper adds, and what an alarm's text knows besides labels.
BESIDES = {"instance", "job"}
LABELS = {"version", "network", "namespace", "pod", "port", "at", "device", "class", "kind", "reason"}


def there() -> set[str]:
    return {family.name + ("_total" if family.kind == COUNTER else "") for family in metrics.Families()}


def rules() -> list[dict[str, Any]]:
    (group,) = YAML(typ="safe").load(MONITORING / "alerts.yaml")["groups"]
    assert group["name"] == "concorde"
    found: list[dict[str, Any]] = group["rules"]
    return found


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
    return found


def expressions() -> list[str]:
    panels = [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]
    return [*panels, *(rule["expr"] for rule in rules())]


def test_every_metric_that_is_asked_for_is_one_that_is_told() -> None:
    for text in [*expressions(), *(one["query"] for one in dashboard()["templating"]["list"])]:
        assert set(NAME.findall(text)) <= there(), text


@pytest.mark.parametrize("expression", expressions())
def test_expressions_are_whole_and_counters_alone_have_rates(expression: str) -> None:
    for opening, closing in ("()", "{}", "[]"):
        assert expression.count(opening) == expression.count(closing)
    assert SELECTED.search(expression)
    for name, selectors, span in SELECTED.findall(expression):
        labels = set(re.findall(r"(\w+)(?:=~|!=|=)", selectors))
        assert labels <= LABELS | BESIDES
        assert bool(span) == name.endswith("_total"), "a counter is asked for its rate, and nothing else is"


def test_labels_that_are_shown_are_labels() -> None:
    texts = [target["legendFormat"] for panel in dashboard()["panels"] for target in panel["targets"]]
    texts += [text for rule in rules() for text in rule["annotations"].values()]
    shown = {label for text in texts for label in SHOWN.findall(text)}
    assert shown <= LABELS | BESIDES


def test_every_alarm_says_what_it_is_and_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))


def test_panels_have_a_place_and_a_number_of_their_own() -> None:
    panels = dashboard()["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_prometheus_takes_the_alarms(tmp_path: Path) -> None:
    rules = shutil.copy(MONITORING / "alerts.yaml", tmp_path)
    done = subprocess.run(["promtool", "check", "rules", rules], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
