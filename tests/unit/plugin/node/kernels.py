"""A kernel that notes what is asked of it, in order, and does nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from concorde import links, rtnetlink, tools
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
        monkeypatch.setattr(rtnetlink, "index_of", lambda _name: 2)
        monkeypatch.setattr(rtnetlink, "qdisc_kind", self._qdisc_kind)
        monkeypatch.setattr(rtnetlink, "has_fq_codel", lambda: self.below == htb.FAIR)
        monkeypatch.setattr(tools, "run", noting("run"))
        monkeypatch.setattr(tools, "batch", noting("batch"))
        monkeypatch.setattr(tools, "batches", noting("batches"))
        monkeypatch.setattr(tunnels, "read", lambda uplink="": [("ip", "vteps", f'"of {uplink}"')])
        monkeypatch.setattr(connections, "are_tracked", lambda: self.tracks)
        monkeypatch.setattr(nfnetlink, "has_chain", noting("chain"))
        monkeypatch.setattr(links, "exists", lambda name: name != "gone")
        monkeypatch.setattr(observe, "observe", self._observe)
        self.observed: list[str] = []
        self.looked_below: list[int] = []

    def _qdisc_kind(self, _index: int, parent: int) -> str:
        self.looked_below.append(parent)
        return self.below

    def _observe(self, uplink: str = "") -> observe.State:
        self.observed.append(uplink)
        return self.state


def failure(output: str = "no", batch: str = "") -> tools.CommandError:
    return tools.CommandError(["tc"], output, batch)
