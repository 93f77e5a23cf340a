"""The namespace of a run: whose it is, and that nobody else's is removed."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testbed.access.place import Result
from testbed.clusters import kubeconfigs, namespaces
from testbed.kubernetes.client import ATTEMPTS, TOO_LATE, PodError
from tests.doubles import Asked, shown
from tests.unit.testbed.clusters.builders import (
    Api,
    without_options,
)


def test_a_run_that_goes_on_is_not_left_behind() -> None:
    assert not namespaces.left_behind(namespaces.owner(100), datetime.now(UTC))


def test_a_process_that_ended_here_left_something_behind() -> None:
    who = {
        namespaces.OWNER: f"me@{socket.gethostname()} {os.getpid()}-1",
        namespaces.UNTIL: "2999-01-01T00:00:00Z",
    }
    assert namespaces.left_behind(who, datetime.now(UTC))


def test_elsewhere_only_time_tells() -> None:
    who = {**namespaces.owner(100), namespaces.OWNER: "me@elsewhere 1-1"}
    assert not namespaces.left_behind(who, datetime.now(UTC))
    assert namespaces.left_behind(who, datetime.now(UTC) + timedelta(seconds=101))


def test_nothing_is_removed_where_nothing_was_left() -> None:
    api = Api(None)
    namespaces.remove_leftovers(api.client)
    assert api.verbs == [["get", "namespace", kubeconfigs.NAMESPACE]]


def test_what_was_left_behind_is_removed() -> None:
    past = {namespaces.UNTIL: "2020-01-01T00:00:00+00:00"}
    api = Api({"labels": namespaces.LABEL, "annotations": past})
    namespaces.remove_leftovers(api.client)
    assert api.verbs[-1] == ["delete", "namespace", kubeconfigs.NAMESPACE]


@pytest.mark.parametrize(
    ("labels", "words"),
    [({}, "a namespace concorde-bench that is not ours"), (namespaces.LABEL, "is under way, until")],
)
def test_what_is_not_left_behind_stays(labels: dict[str, str], words: str) -> None:
    api = Api({"labels": labels, "annotations": namespaces.owner(100)})
    with pytest.raises(LookupError, match=words):
        namespaces.remove_leftovers(api.client)
    assert [asked[0] for asked in api.verbs] == ["get"]


class Stuck(Api):
    """Its namespace stays, because of a pod."""

    def answer(self, asked: Asked) -> Result:
        words = without_options(asked)
        message = "Some resources are remaining: pods. has 1 resource instances"
        event = {"involvedObject": {"name": "a-1"}, "message": "error killing pod: not found"}
        answers: dict[str, Any] = {
            "namespace": {"status": {"conditions": [{"status": "True", "message": message}]}},
            "pods": {"items": [{"metadata": {"name": "a-1"}}]},
            "events": {"items": [event]},
        }
        if words[0] == "delete":
            return Result(1, "", "warning\nerror: timed out waiting for the condition\n")
        return shown(answers[words[1]])


def test_it_is_said_what_keeps_a_namespace() -> None:
    with pytest.raises(PodError) as raised:
        namespaces.remove(Stuck(None).client)
    assert str(raised.value) == (
        "cluster a: namespace concorde-bench cannot be removed: error: timed out waiting for the condition; "
        "Some resources are remaining: pods. has 1 resource instances; pod a-1: error killing pod: not found"
    )


class Late(Api):
    """Says of some deletions, or of all, that they took too long."""

    def __init__(self, times: int) -> None:
        super().__init__(None)
        self._times = times

    def answer(self, asked: Asked) -> Result:
        if without_options(asked)[0] != "delete" or self._times == 0:
            return super().answer(asked)
        self._times -= 1
        return Result(1, "", f"{TOO_LATE[0]}: the server was unable to return a response in time\n")


def test_an_api_that_is_late_is_asked_for_a_removal_again() -> None:
    api = Late(2)
    namespaces.remove(api.client)
    pods, namespace = ["delete", "pods"], ["delete", "namespace", kubeconfigs.NAMESPACE]
    assert api.verbs == [pods, pods, pods, namespace]


def test_an_api_that_stays_late_is_not_asked_for_ever() -> None:
    api = Late(1000)
    with pytest.raises(PodError, match=r"cannot be removed: Error from server \(Timeout\)"):
        namespaces.remove(api.client)
    assert api.verbs.count(["delete", "pods"]) == ATTEMPTS


class LateMaker(Api):
    """Makes the namespace, says that it had no time, and then that there is one."""

    def _created(self, asked: Asked) -> Result:
        if self.metadata:
            return super()._created(asked)
        self.metadata = json.loads(asked.stdin)["metadata"]
        return Result(1, "", f"{TOO_LATE[0]}: the server was unable to return a response in time\n")


def test_a_namespace_that_an_api_made_too_late_is_ones_own() -> None:
    api = LateMaker(None)
    claimed = namespaces.Namespaces([api.client], 100)
    claimed.claim()
    words = [asked[0] for asked in api.verbs]
    assert words == ["get", "create", "create", "get", "apply"]
    claimed.remove()
    assert api.verbs[-1] == ["delete", "namespace", kubeconfigs.NAMESPACE]


def test_what_stays_up_is_nobodys_leftover_until_its_time_is_over() -> None:
    who = {namespaces.OWNER: namespaces.user(), namespaces.UNTIL: "2999-01-01T00:00:00+00:00"}
    assert not namespaces.left_behind(who, datetime.now(UTC))
    assert namespaces.left_behind({**who, namespaces.UNTIL: "2020-01-01T00:00:00+00:00"}, datetime.now(UTC))


def test_a_run_is_told_what_stays_up_there_and_how_to_end_it() -> None:
    annotations = {
        namespaces.OWNER: "me@elsewhere",
        namespaces.UNTIL: "2999-01-01T00:00:00+00:00",
        namespaces.TESTBED: "lab",
    }
    api = Api({"labels": namespaces.LABEL, "annotations": annotations})
    with pytest.raises(LookupError) as raised:
        namespaces.remove_leftovers(api.client)
    assert str(raised.value) == (
        "cluster 'a': testbed 'lab' of me@elsewhere stays up there until 2999-01-01T00:00:00+00:00: "
        "./invokew down --name lab ends it"
    )
