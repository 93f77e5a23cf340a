"""Which kubeconfig leads to which cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.clusters import kubeconfigs
from tests.unit.testbed.clusters.builders import (
    scenario,
)


def test_kubeconfigs_go_by_name_or_by_order(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.touch()
    second.touch()
    assert kubeconfigs.files(scenario(), f"{first},{second}") == {"a": first, "b": second}
    assert kubeconfigs.files(scenario(), f"b={first},a={second}") == {"a": second, "b": first}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{file}", "none for b; scenario 'contmec' has the clusters a, b"),
        ("{file},{file},{file}", "no cluster 'number 3' (clusters: a, b)"),
        ("c={file}", "no cluster 'c' (clusters: a, b)"),
        ("{file},a={file}", "cluster 'a' has one already"),
        ("/nowhere,{file}", "/nowhere: no such file"),
    ],
)
def test_a_wrong_kubeconfig_is_named(tmp_path: Path, given: str, words: str) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(LookupError) as raised:
        kubeconfigs.files(scenario(), given.format(file=file))
    assert words in str(raised.value)
