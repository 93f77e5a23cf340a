"""Which kubeconfig leads to which cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.clusters import kubeconfigs
from testbed.clusters.kubeconfigs import Access, Outside
from tests.doubles import RecordingNode
from tests.unit.testbed.clusters.builders import scenario

CONTEXTS = """
apiVersion: v1
kind: Config
current-context: a
contexts:
- {name: a, context: {cluster: a, user: u}}
- {name: kubernetes-admin@kubernetes, context: {cluster: b, user: u}}
"""


def test_kubeconfigs_go_by_name_or_by_order(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.touch()
    second.touch()
    by_order, by_name = {"a": Access(first), "b": Access(second)}, {"a": Access(second), "b": Access(first)}
    assert kubeconfigs.accesses(scenario(), f"{first},{second}") == by_order
    assert kubeconfigs.accesses(scenario(), f"b={first},a={second}") == by_name


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
        kubeconfigs.accesses(scenario(), given.format(file=file))
    assert words in str(raised.value)


def test_a_file_of_several_contexts_leads_to_each_cluster(tmp_path: Path) -> None:
    file = tmp_path / "both"
    file.write_text(CONTEXTS)
    given = kubeconfigs.joined([f"a={file}@a", f"{file}@kubernetes-admin@kubernetes"])
    found = kubeconfigs.accesses(scenario(), given)
    assert found == {"a": Access(file, "a"), "b": Access(file, "kubernetes-admin@kubernetes")}
    assert [Access.of(str(access)) for access in found.values()] == list(found.values())
    client = Outside.by(found["b"], "b", "kubectl")
    assert client.command("get")[1::2] == [f"--kubeconfig={file}", "--context=kubernetes-admin@kubernetes"]
    assert client.access == found["b"]
    assert not any("--context" in word for word in Outside("b", RecordingNode("x"), "kubectl", "b").command())


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (CONTEXTS, r"no context 'c' in \S+ \(contexts: a, kubernetes-admin@kubernetes\)"),
        ("contexts: 7", "is not a kubeconfig with contexts"),
        ("[", "is not a kubeconfig with contexts"),
        ("contexts: []", r"\(contexts: none\)"),
    ],
)
def test_a_context_that_is_not_there_is_named(content: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "both"
    file.write_text(content)
    with pytest.raises(LookupError, match=f"--kubeconfig {file}@c: .*{fault}"):
        kubeconfigs.accesses(scenario(), f"{file}@c,{file}")


@pytest.mark.parametrize("name", ["east,west.conf", "a=x.conf", "a@home.conf", "back\\slash,.conf"])
def test_a_path_may_have_any_character(name: str, tmp_path: Path) -> None:
    file, other = tmp_path / name, tmp_path / "other"
    file.touch()
    other.touch()
    given = kubeconfigs.joined([str(file), f"b={other}"])
    assert kubeconfigs.accesses(scenario(), given) == {"a": Access(file), "b": Access(other)}
