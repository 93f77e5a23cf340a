"""A kernel that notes what is asked of it, in order, and does nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from concorde import batches, host_interfaces, links, rtnetlink, tools
from concorde.node import connections, htb, nfnetlink, observe, tunnels


class NotingKernel:
    """What was asked, each as a tuple of words; `failing` says which of it fails, by its beginning."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, state: observe.State | None = None) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.failing: dict[tuple[Any, ...], Exception] = {}
        self.answers: dict[str, str] = {}
        self.tracks = False
        self.below = "bfifo"  # any class
        self.state = state or observe.State()

        def noting(*beginning: Any) -> Callable[..., Any]:
            def note(*arguments: Any, netns: str = "") -> Any:
                words = (*beginning, *arguments, *([netns] if netns else []))
                self.asked.append(words)
                for beginning_of, error in self.failing.items():
                    if words[: len(beginning_of)] == beginning_of:
                        raise error
                return self.answers.get(" ".join(map(str, arguments)), "")

            return note

        monkeypatch.setattr(nfnetlink, "change", noting("set"))
        monkeypatch.setattr(rtnetlink, "close_port", noting("close"))
        monkeypatch.setattr(rtnetlink, "take_down", noting("down"))
        monkeypatch.setattr(rtnetlink, "index_of", lambda *_: 2)
        monkeypatch.setattr(rtnetlink, "qdisc_kind", self._qdisc_kind)
        monkeypatch.setattr(rtnetlink, "has_fq_codel", lambda: self.below == htb.FAIR)
        monkeypatch.setattr(tools, "run", noting("run"))
        monkeypatch.setattr(batches, "run", noting("batch"))
        monkeypatch.setattr(batches, "run_all", noting("batches"))
        monkeypatch.setattr(
            tunnels,
            "read",
            lambda trees: [("ip", "vteps", f'"of {" ".join(tree.uplink for tree in trees)}"')],
        )
        monkeypatch.setattr(connections, "are_tracked", lambda: self.tracks)
        monkeypatch.setattr(nfnetlink, "has_chain", noting("chain"))
        self.lacks: set[str] = set()  # families without a table, and "root"
        monkeypatch.setattr(nfnetlink, "has_table", lambda family: family not in self.lacks)
        monkeypatch.setattr(rtnetlink, "has_root", lambda _index: "root" not in self.lacks)
        monkeypatch.setattr(links, "exists", lambda name: name != "gone")
        monkeypatch.setattr(observe, "observe", self._observe)
        self.observed: list[str] = []
        self.looked_below: list[int] = []

    def has_uplink(self, root: str | None, classes: Mapping[int, Any] = {}) -> None:
        """Let eth0 have this root qdisc and these classes; None: it is missing."""
        self.state.uplinks = {} if root is None else {"eth0": observe.UplinkState(root)}
        for uplink in self.state.uplinks.values():
            uplink.classes.update(classes)

    def _qdisc_kind(self, _index: int, parent: int) -> str:
        self.looked_below.append(parent)
        return self.below

    def _observe(self, *uplinks: str) -> observe.State:
        self.observed.append(" ".join(uplinks))
        return self.state


class Cables:
    """Links of the node (-1) and of namespaces it has numbers for, of which host_interfaces asks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._links: dict[tuple[int, int], dict[str, Any]] = {}
        self.numbers: dict[str, int] = {}
        monkeypatch.setattr(host_interfaces, "_asked", self._asked)
        monkeypatch.setattr(host_interfaces, "_number_of", self._number_of)
        monkeypatch.setattr(host_interfaces, "namespace", lambda netns: f"inode of {netns}")
        monkeypatch.setattr(rtnetlink, "peer_address", self._peer_address)

    def add(self, index: int, name: str, at: int = -1, **keys: Any) -> None:
        """A link; ``peer`` and ``number`` say what is at its other end."""
        self._links[at, index] = {
            "name": name,
            "kind": "",
            "mac": "",
            "peer": 0,
            "number": -1,
            "master": 0,
        } | keys

    def pair(self, index: int, name: str, number: int, mac: str, peer: int = 2, **keys: Any) -> None:
        """A veth of the node, and eth0 of a pod in the namespace of that number."""
        self.numbers[f"/run/netns/{number}"] = number
        self.add(index, name, kind="veth", mac=f"host {index}", peer=peer, number=number, **keys)
        self.add(peer, "eth0", at=number, kind="veth", mac=mac, peer=index, number=99)

    def _asked(self, index: int, name: str, number: int = -1) -> host_interfaces.HostInterface:
        for (at, of), link in self._links.items():
            if at == number and (of == index or link["name"] == name):
                found = host_interfaces.HostInterface(of, {})
                found.__dict__.update(link)
                return found
        raise OSError(rtnetlink.NO_SUCH_DEVICE, "no such device")

    def _number_of(self, netns: str) -> int:
        if netns not in self.numbers:
            raise FileNotFoundError(netns)
        return self.numbers[netns]

    def _peer_address(self, name: str) -> str:
        for link in self._links.values():
            if link["name"] == name:
                return str(self._links.get((link["number"], link["peer"]), {}).get("mac", ""))
        return ""


def failure(output: str = "no", line: int = 0, errno: int = 0) -> tools.CommandError:
    return tools.CommandError(["tc"], output, line, errno)
