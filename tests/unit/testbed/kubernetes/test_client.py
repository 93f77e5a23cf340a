"""What kubectl is asked, and what is made of its answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed.access.local import Local
from testbed.access.place import CommandError
from testbed.enforcements import registry
from testbed.kubernetes import manifests
from testbed.kubernetes.client import ATTEMPTS, TOO_LATE, Client, PodError, complaints
from testbed.supplies import versions
from tests.unit.testbed.builders import addressed

KUBECTL = """#!/bin/sh
shift 2
echo "$@" >>"$0.asked"
[ ! -e "$0.$3" ] || exec cat "$0.$3"
[ "$1" != wait ] || [ ! -e "$0.then" ] || exec mv "$0.then" "$0.pods"
[ "$1" != wait ] || exec test -e "$0.ready"
[ ! -s "$0.late" ] || { head -n 1 "$0.late" >&2; sed -i 1d "$0.late"; exit 1; }
"""


@pytest.fixture
def client(tmp_path: Path) -> Client:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    return Client("a", Local(), str(kubectl), "a.conf")


def asked(client: Client) -> Sequence[str]:
    return Path(f"{client.kubectl}.asked").read_text().splitlines()


def test_bandwidth_is_published_to_a_node_that_is_ready(client: Client) -> None:
    Path(f"{client.kubectl}.ready").touch()
    enforcement = registry.of(addressed("congested", "enforcement=pod"))
    published = manifests.publication(enforcement, "a", "worker-01", versions.parse("1.26.0"))
    client.publish("worker-01", published, 5)
    status = (
        '{"status": {"capacity": {"concorde.contmec.dev/egress": "9000000000"}, '
        '"allocatable": {"concorde.contmec.dev/egress": "9000000000"}}}'
    )
    assert asked(client) == [
        "wait --for=condition=Ready --timeout=5s node/worker-01",
        f"patch node worker-01 --subresource=status --type=merge --patch={status}",
    ]


def test_nothing_is_published_to_a_node_whose_kubelet_may_still_take_it_out(client: Client) -> None:
    with pytest.raises(CommandError):
        client.publish("worker-01", {}, 5)
    assert len(asked(client)) == 1


def will_say(client: Client, *words: str) -> None:
    Path(f"{client.kubectl}.late").write_text("".join(f"{line}\n" for line in words))


def test_an_api_that_is_late_is_asked_again(client: Client) -> None:
    will_say(client, *(f"{words}: ..." for words in TOO_LATE))
    client.run("get", "nodes")
    assert asked(client) == ["get nodes"] * (len(TOO_LATE) + 1)


def test_an_api_that_stays_late_is_not_asked_for_ever(client: Client) -> None:
    will_say(client, *[f"{TOO_LATE[0]}: ..."] * (ATTEMPTS + 1))
    with pytest.raises(CommandError, match=r"get nodes ended with 1: Error from server \(Timeout\)"):
        client.run("get", "nodes")
    assert asked(client) == ["get nodes"] * ATTEMPTS


def test_what_an_api_refuses_is_not_asked_twice(client: Client) -> None:
    will_say(client, "Error from server (NotFound): ...")
    assert client.run("get", "nodes", check=False).status == 1
    assert asked(client) == ["get nodes"]


def _pod(name: str, ready: bool) -> dict[str, object]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "status": {"conditions": conditions}}


def _event(pod: str, at: str, reason: str, message: str, kind: str = "Warning") -> dict[str, object]:
    involved = {"uid": f"uid-{pod}"}
    return {
        "involvedObject": involved, "lastTimestamp": at, "type": kind, "reason": reason, "message": message,
    }  # fmt: skip


def test_the_last_warning_about_a_pod_that_is_not_ready_is_what_counts() -> None:
    events = [
        _event("a", "2026-01-01T00:00:02Z", "FailedCreatePodSandBox", "no room"),
        _event("a", "2026-01-01T00:00:01Z", "FailedScheduling", "not yet"),
        _event("a", "2026-01-01T00:00:03Z", "Scheduled", "placed", kind="Normal"),
        _event("b", "2026-01-01T00:00:03Z", "Unhealthy", "was so once"),
        _event("c", "2026-01-01T00:00:03Z", "FailedScheduling", "not asked for"),
    ]
    pods = [_pod("a", False), _pod("b", True), _pod("c", False)]
    assert complaints(pods, events, ["a", "b"]) == [("a", "FailedCreatePodSandBox", "no room", 1)]


SANDBOX = "FailedCreatePodSandBox"


@pytest.mark.parametrize(
    ("reason", "message", "counts", "final"),
    [
        (SANDBOX, "no room", [1], False),
        (SANDBOX, "no room", [1, 1], True),
        (SANDBOX, "no room", [2], True),
        ("ErrImageNeverPull", "no image", [1], True),
        ("FailedScheduling", "1 Insufficient cpu", [1], True),
        ("FailedMount", "not yet", [1, 1, 5], False),
    ],
)
def test_a_network_that_refuses_a_pod_is_asked_twice(
    reason: str, message: str, counts: list[int], final: bool
) -> None:
    events = [
        {**_event("a", f"2026-01-01T00:00:0{at}Z", reason, message), "count": count}
        for at, count in enumerate(counts)
    ]
    (found,) = complaints([_pod("a", False)], [*events, _event("b", "2026", SANDBOX, "another's")], ["a"])
    assert found.final is final


def test_a_pod_that_is_refused_ends_the_waiting(client: Client) -> None:
    there_are(client, "pods", _pod("a", False))
    there_are(client, "events", {**_event("a", "2026", SANDBOX, "no room"), "count": 2})
    with pytest.raises(PodError, match=r"\Apod a of cluster a: no room\Z"):
        client.wait_until_ready(["a"], 60)


def there_are(client: Client, kind: str, *items: dict[str, object]) -> None:
    Path(f"{client.kubectl}.{kind}").write_text(json.dumps({"items": items}))


def test_of_many_pods_one_is_waited_for_at_a_time_and_those_that_are_ready_are_not_asked_for(
    client: Client,
) -> None:
    there_are(client, "pods", _pod("a", True), _pod("b", False), _pod("c", False))
    there_are(client, "then", _pod("a", True), _pod("b", True), _pod("c", True))
    client.wait_until_ready(["a", "b", "c"], 5)
    assert asked(client) == [
        "get --output=json pods",
        "wait --for=condition=Ready --timeout=3s pod/c",
        "get --output=json pods",
    ]


def test_pods_that_are_late_are_named_and_no_others(client: Client) -> None:
    there_are(client, "pods", _pod("a", True), _pod("b", False))
    there_are(client, "events")
    with pytest.raises(PodError, match=r"\Acluster a: not ready after 0 s: b, c\Z"):
        client.wait_until_ready(["a", "b", "c"], 0)
