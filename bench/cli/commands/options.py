"""What options mean that several verbs have, and which of them have a short form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from invoke import tasks
from invoke.parser.argument import Argument
from invoke.tasks import Task

# The short form of an option, whichever verb has it; h, l, R and V are the program's own (bench.cli.program).
# Shell completion reads this as it stands here.
SHORT = {
    "all_": "a",
    "duration": "d",
    "enforcement": "e",
    "interface": "i",
    "json": "j",
    "kubeconfig": "k",
    "name": "n",
    "orchestrator": "o",
    "provider": "p",
    "repetitions": "r",
    "scenario": "s",
    "to": "t",
}

SCENARIO = "a scenario's name or file, or a recording of one"
CHANGES = {
    "set_": "override one field, as in flows[0].duration=5; may be repeated",
    "scale": "multiply every rate, as in 0.1",
}
DURATION = {"duration": "seconds that the traffic takes, all of it in proportion (default: the scenario's)"}
PROVIDER = {
    "provider": "where nodes come from: netns, ssh:INVENTORY, ssh with addresses in the scenario, or vagrant"
}
ORCHESTRATOR = {"orchestrator": "what runs the pods: cni, kubernetes"}
REPORTS = {"reports": "directory of the recordings"}
JSON = {"json": "one JSON document on standard output; what people are told goes to standard error"}
SHEET = {
    "preset": "draw for a column (3.5in), a page (7in) or a slide (10in, in text of 12 points)",
    "width": "how wide figures are, as in 3.5in, 89mm, 8.9cm or 252pt",
    "font_size": "points of their text, as in 8",
    "format": "which of svg, pdf, png, as in pdf,png (default: all)",
}
RUN = {**CHANGES, **PROVIDER, **ORCHESTRATOR, **REPORTS}
STUDY = {
    **RUN,
    **JSON,
    "resume": "go on with an interrupted study, as it was begun: its directory or name",
}
DRAW = {"draw": "draw nodes, zones, clusters, pods and promises on the terminal, and as SVG into this file"}
NAME = {"name": "which testbed, if several are up (default: the usual one, or the only one)"}
KEPT = {
    **NAME,
    "provider": "what else is meant than a testbed by its name: ssh:INVENTORY, ssh with addresses in the "
    "scenario, vagrant",
    "scenario": "with --provider: the scenario that has the machines, or their addresses",
}


class Verb(Task[Callable[..., None]]):
    """A task whose options have the short forms of the table, and not what letters invoke finds left over."""

    def arg_opts(self, name: str, default: Any, taken_names: set[str]) -> dict[str, Any]:
        """Return what invoke makes an argument of; what stands alone as a word has no short form."""
        found = super().arg_opts(name, default, taken_names)
        long = found["names"][0]
        alone = found["positional"] and found.get("kind") is not list
        found["names"] = [long] if alone or name not in SHORT else [long, SHORT[name]]
        return found

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        """Return what takes the options; what they mean, which invoke forgets when it is asked, is kept."""
        known = dict(self.help)
        found = super().get_arguments(ignore_unknown_help)
        self.help = known
        return found


def task(*arguments: Any, **keywords: Any) -> Callable[..., Any]:
    """Make a function a verb: invoke's decorator of the same name, with our short options."""
    return tasks.task(*arguments, klass=Verb, **keywords)
