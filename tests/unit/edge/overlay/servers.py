"""Stores that answer from memory: an etcd, and an API of nodes."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

from edge.http import AwayError, Json, Question, Server


def coded(text: str) -> str:
    return b64encode(text.encode()).decode()


def stored(key: str, value: str, lease: str = "7", revision: int = 2) -> Json:
    """A pair as etcd's gateway shows it."""
    return {"key": coded(key), "value": coded(value), "lease": lease, "mod_revision": str(revision)}


class Scripted(Server):
    """An etcd that takes what it is given; ``others`` is there besides, ``said`` is what a watch says.

    ``instead`` is answered to every list; ``lost`` are leases of etcd's that are over.
    """

    def __init__(self) -> None:
        super().__init__("http://192.0.2.1:4001")
        self.own: dict[str, Json] = {}
        self.revision = 3
        self.others: list[Json] = []
        self.said: list[Json] = []
        self.instead: Json | None = None
        self.asked: list[str] = []
        self.lost: set[str] = set()
        self.granted = 0
        self.network: str = ""

    def ask(self, question: Question) -> Json:
        self.asked.append(question.path)
        body: Any = question.body
        match question.path:
            case "/v3/kv/txn":
                return self._compared(body)
            case "/v3/lease/grant":
                self.granted += 1
                return {"ID": str(self.granted), "TTL": body["TTL"]}
            case "/v3/lease/keepalive":
                over = body["ID"] in self.lost
                return {"result": {"ID": body["ID"], **({} if over else {"TTL": "60"})}}
            case "/v3/kv/put":
                self.own[body["key"]] = {**body, "mod_revision": "3"}
                return {"header": {"revision": "3"}}
            case "/v3/kv/range":
                if self.instead is not None:
                    return self.instead
                return {"header": {"revision": "3"}, "kvs": [*self.others, *self.own.values()]}
        raise AssertionError(question.path)

    def listen(self, question: Question, silence: float) -> Iterator[Json]:
        assert question.path == "/v3/watch"
        yield {"result": {"header": {"revision": "3"}, "created": True}}
        yield from self.said

    def _compared(self, body: Any) -> Json:
        if not self.network:
            self.network = b64decode(body["success"][0]["request_put"]["value"]).decode()
            return {"succeeded": True}
        return {"responses": [{"response_range": {"kvs": [{"value": coded(self.network)}]}}]}


class Silent(Server):
    """A store that is away."""

    def __init__(self) -> None:
        super().__init__("http://192.0.2.1:4001")

    def ask(self, question: Question) -> Json:
        raise AwayError("nobody is there")


class Nodes(Server):
    """An API server with nodes; ``said`` is what a watch says."""

    def __init__(self, nodes: dict[str, Json]) -> None:
        super().__init__("http://192.0.2.1:6443")
        self.nodes, self.said = nodes, list[Json]()
        self.patched: list[Question] = []

    def ask(self, question: Question) -> Json:
        if question.method == "PATCH":
            self.patched.append(question)
            assert question.body is not None
            name = question.path.split("/")[-2]
            self.nodes[name]["metadata"].setdefault("annotations", {}).update(
                question.body["metadata"]["annotations"]
            )
            return self.nodes[name]
        assert question.path == "/api/v1/nodes"
        return {"metadata": {"resourceVersion": "41"}, "items": list(self.nodes.values())}

    def listen(self, question: Question, silence: float) -> Iterator[Json]:
        assert "resourceVersion=41" in question.path
        yield from self.said
