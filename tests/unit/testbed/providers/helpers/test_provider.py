"""Helpers in the nodes of clusters that exist, and the namespace they are in."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.access.place import CommandError
from testbed.clusters import kubeconfigs, namespaces
from testbed.clusters.survey import survey
from testbed.providers.helpers import HelpersProvider
from tests.unit.testbed.clusters.builders import (
    Api,
    answers,
    enforcement,
    scenario,
)


@pytest.mark.parametrize(
    ("there", "removed"),
    [
        ({"labels": namespaces.LABEL, "annotations": {namespaces.UNTIL: "2020-01-01T00:00:00+00:00"}}, False),
        (None, True),
    ],
)
def test_only_ones_own_namespace_is_removed(there: dict[str, Any] | None, removed: bool) -> None:
    """Another run was faster, or Ctrl-C came while the namespace was made."""
    api = Api(there)
    ground, _ = survey(scenario(), enforcement(scenario()), answers())
    nodes = HelpersProvider(scenario(), ground, {"a": api.client}, "image")
    with pytest.raises((CommandError, KeyboardInterrupt)):
        nodes.up()
    api.asked.clear()
    nodes.down()
    assert ["delete", "namespace", kubeconfigs.NAMESPACE] in api.verbs if removed else api.verbs == []
