"""Pods that stay up in clusters that exist; a cluster is a stand-in that has one ConfigMap, or none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.access.place import CommandError, Result, Route
from testbed.access.remote import MARKED
from testbed.clusters import kubeconfigs, namespaces
from testbed.clusters.kubeconfigs import Outside
from testbed.clusters.namespaces import Record
from testbed.clusters.survey import survey
from testbed.providers import Provider, helpers
from testbed.providers.helpers import (
    LIFETIME_SECONDS,
    HelpersProvider,
    PersistedPods,
    PodsPersistence,
)
from testbed.providers.persistence import Location, State
from tests.doubles import Asked, RecordingNode, SilentNode, said, shown
from tests.unit.testbed.clusters.builders import answers, enforcement, scenario

STATE = State(
    scenario="contmec",
    enforcement="node",
    places={
        "A-1": Location(
            kind="pod",
            node="worker-01",
            address="10.0.0.2",
            entry=Route(node="a", command=("exec", "--stdin", "a-1", "--")),
            network=Route(node="a", command=("exec", "--stdin", "node.worker-01", "--", "nsenter", "--")),
        )
    },
)


class Cluster(RecordingNode):
    """Says what was kept in it."""

    def __init__(self, kept: Record | None) -> None:
        super().__init__("this machine")
        self.kept = kept

    def answer(self, asked: Asked) -> Result:
        if "configmap" in asked.argv and self.kept is not None:
            return shown({"data": vars(self.kept)})
        return said("")

    def client(self, cluster: str = "a") -> Outside:
        return Outside(cluster, self, "kubectl", f"/{cluster}.conf")


def kept(name: str = "lab", owner: str | None = None) -> Record:
    return Record(name, "a", owner or namespaces.user(), "2999-01-01T00:00:00+00:00", STATE.model_dump_json())


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PodsPersistence:
    """What knows of one testbed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(kubeconfigs, "kubectl", lambda: "kubectl")
    helpers.remember("lab", {"a": "/a.conf"})
    return PodsPersistence()


def asked_of(monkeypatch: pytest.MonkeyPatch, cluster: RecordingNode) -> None:
    """Let a cluster be asked instead of this machine's kubectl."""
    monkeypatch.setattr(kubeconfigs, "Local", lambda: cluster)


def test_one_is_found_by_its_name(known: PodsPersistence, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_of(monkeypatch, Cluster(kept()))
    assert known.names() == ["lab"]
    found = known.find("lab")
    assert found is not None
    state = found.state()
    assert state.places == STATE.places
    assert state.notes == [
        "its pods are in namespace concorde-bench, and end by themselves at 2999-01-01T00:00:00+00:00"
    ]
    assert known.find("other") is None


@pytest.mark.parametrize(
    "there",
    [None, kept(name="other"), kept(owner="somebody@elsewhere")],
    ids=["nothing", "other", "not mine"],
)
def test_what_a_cluster_no_longer_has_is_forgotten(
    known: PodsPersistence, there: Record | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_of(monkeypatch, Cluster(there))
    assert known.find("lab") is None
    assert known.names() == []


def test_a_cluster_that_does_not_answer_may_have_it(
    known: PodsPersistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_of(monkeypatch, SilentNode("this machine"))
    found = known.find("lab")
    assert found is not None
    for ask in (found.state, found.down):
        with pytest.raises(RuntimeError, match=r"gone; if its cluster is gone for good, remove .*/lab\.json"):
            ask()
    assert known.names() == ["lab"]


def test_down_removes_what_is_there_and_forgets_it(
    known: PodsPersistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(kept())
    asked_of(monkeypatch, cluster)
    found = known.find("lab")
    assert found is not None
    assert found.down() == "testbed 'lab' is down"
    deleted = [asked.argv[3:6] for asked in cluster.asked if "delete" in asked.argv]
    assert deleted == [["delete", "pods", "--all"], ["delete", "namespace", kubeconfigs.NAMESPACE]]
    assert known.names() == []


def test_a_kubeconfig_is_way_enough(known: PodsPersistence, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_of(monkeypatch, Cluster(kept(name="theirs", owner="somebody@elsewhere")))
    found = known.at("x=/their.conf", None, None)
    assert found is not None
    assert (found.name, found.clients["a"].kubeconfig) == ("theirs", "/their.conf")
    asked_of(monkeypatch, Cluster(None))
    assert known.at("/their.conf", None, None) is None


def test_commands_go_by_kubectl() -> None:
    there = PersistedPods("lab", {"a": Cluster(kept()).client()})
    kubectl = ["kubectl", "--kubeconfig=/a.conf", "--namespace=concorde-bench", "exec", "--stdin"]
    where = there.state().places["A-1"]
    assert there.command(where.entry, ["ip", "route"]).argv == [*kubectl, "a-1", "--", "ip", "route"]
    assert there.login(where, []).argv == [*kubectl, "a-1", "--", *helpers.SHELL]
    captured = list(there.capture(where, "eth0", ["tcp"]).argv)
    assert captured[:9] == [*kubectl, "node.worker-01", "--", "nsenter", "--"]
    assert captured[-6:] == ["worker-01", "-n", "-l", "-i", "eth0", "tcp"]


def test_only_clusters_that_were_given_have_kubeconfigs(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("kubeconfig of a")
    there = PersistedPods("lab", {"a": Outside("a", SilentNode(), "kubectl", str(tmp_path / "a.conf"))})
    assert there.kubeconfig("a") == "kubeconfig of a"
    with pytest.raises(LookupError, match=r"has no Kubernetes cluster 'b' \(clusters: a\)"):
        there.kubeconfig("b")


class Fresh(RecordingNode):
    """A cluster without the namespace, whose pods say nothing but that they have said it."""

    def answer(self, asked: Asked) -> Result:
        if asked.argv[-2:] == ["--output=json", "pods"]:  # all that was applied runs at once
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            return shown({"items": [{**one, "status": ready} for one in self.applied()]})
        return said(asked.argv[asked.argv.index(MARKED) + 2] if MARKED in asked.argv else "")

    def applied(self) -> list[dict[str, object]]:
        """The manifests that were applied, the last ones last."""
        lists = [json.loads(asked.stdin)["items"] for asked in self.asked if "apply" in asked.argv]
        return [item for items in lists for item in items]


def test_what_stays_is_written_into_the_cluster_and_only_paths_are_known_here(
    known: PodsPersistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, wanted = Fresh("this machine"), scenario()
    clients = {name: Outside(name, cluster, "/bin/kubectl", f"/{name}.conf") for name in wanted.clusters}
    ground, _ = survey(wanted, enforcement(wanted), answers())
    lifetimes = []

    def on_clusters(_: object, source: str, seconds: int) -> HelpersProvider:
        lifetimes.append((source, seconds))
        return HelpersProvider(wanted, ground, clients, "image", seconds)

    @contextmanager
    def bring_up(provider: Provider) -> Iterator[State]:
        assert isinstance(provider, HelpersProvider)
        provider.up()
        route = Route(node="this machine", command=tuple(clients["b"].execution("node.worker-01")))
        node = Location(kind="node", node="worker-01", address="192.168.56.13", entry=route, network=route)
        yield State(scenario="contmec", enforcement="node", places={"worker-01": node})

    monkeypatch.setattr(helpers, "on_clusters", on_clusters)
    made = known.up(wanted, "a=/a.conf,b=/b.conf", "new", bring_up, print)

    assert made.name == "new"
    assert lifetimes == [("a=/a.conf,b=/b.conf", LIFETIME_SECONDS)]
    assert helpers.remembered("new") == {"a": "/a.conf", "b": "/b.conf"}
    written = [one for one in cluster.applied() if one["kind"] == "ConfigMap"]
    assert [one["data"]["cluster"] for one in written] == ["a", "b"]  # type: ignore[index]
    (text,) = {one["data"]["state"] for one in written}  # type: ignore[index]
    assert "/bin/kubectl" not in text
    assert State.model_validate_json(text).places["worker-01"] == Location(
        kind="node",
        node="worker-01",
        address="192.0.2.1",  # as the API says
        entry=Route(node="b", command=("exec", "--stdin", "node.worker-01", "--")),
        network=Route(node="b", command=("exec", "--stdin", "node.worker-01", "--")),
    )
    annotated = [asked.argv[-2:] for asked in cluster.asked if "annotate" in asked.argv]
    assert annotated == [[f"{namespaces.OWNER}={namespaces.user()}", f"{namespaces.TESTBED}=new"]] * 2


def test_a_taken_name_is_refused_before_clusters_are_asked_for_room(
    known: PodsPersistence, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_of(monkeypatch, Cluster(kept()))
    with pytest.raises(LookupError, match="testbed 'lab' is up already"):
        known.up(scenario(), "", "lab", _nothing, print)


@contextmanager
def _nothing(_: Provider) -> Iterator[State]:
    raise CommandError("nobody", [], 1, "nothing is to be made")
    yield
