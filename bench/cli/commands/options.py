"""What options mean that several verbs have."""

from __future__ import annotations

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
RUN = {**CHANGES, **PROVIDER, **ORCHESTRATOR, **REPORTS}
STUDY = {
    **RUN,
    **JSON,
    "resume": "go on with an interrupted study, as it was begun: its directory or name",
}
NAME = {"name": "which testbed, if several are up (default: the usual one, or the only one)"}
KEPT = {
    **NAME,
    "provider": "what else is meant than a testbed by its name: ssh:INVENTORY, ssh with addresses in the "
    "scenario, vagrant",
    "scenario": "with --provider: the scenario that has the machines, or their addresses",
}
