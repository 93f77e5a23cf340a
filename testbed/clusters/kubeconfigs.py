"""The clusters that kubeconfigs lead to."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed.access.local import Local
from testbed.kubernetes.client import Client
from testbed.scenario import Scenario
from testbed.supplies import binaries

NAMESPACE = "concorde-bench"


@dataclass(frozen=True)
class Outside(Client):
    """Asks a cluster's API from this machine, about one namespace; kubectl keeps its cache where it likes."""

    namespace: str = NAMESPACE

    def command(self, *arguments: str) -> list[str]:
        """Return a command line of kubectl."""
        return [self.kubectl, f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}", *arguments]


def clients(scenario: Scenario, kubeconfigs: str) -> dict[str, Outside]:
    """Return what asks each cluster of a scenario, given kubeconfigs as ``files`` takes them."""
    program = kubectl()
    return {
        cluster: Outside(cluster, Local(), program, str(file))
        for cluster, file in files(scenario, kubeconfigs).items()
    }


def files(scenario: Scenario, kubeconfigs: str) -> dict[str, Path]:
    """Return each cluster's kubeconfig. Raises LookupError.

    They are separated by commas, each named like ``a=FILE`` or in the order of the scenario's clusters.
    """
    names = list(scenario.clusters)
    given: dict[str, Path] = {}
    for index, word in enumerate(filter(None, kubeconfigs.split(","))):
        name, equals, file = word.partition("=")
        if not equals:
            name, file = names[index] if index < len(names) else f"number {index + 1}", word
        if name not in names:
            raise LookupError(f"--kubeconfig {word}: no cluster {name!r} (clusters: {', '.join(names)})")
        if name in given:
            raise LookupError(f"--kubeconfig {word}: cluster {name!r} has one already")
        if not Path(file).is_file():
            raise LookupError(f"--kubeconfig {word}: no such file")
        given[name] = Path(file).absolute()
    if missing := [name for name in names if name not in given]:
        raise LookupError(
            f"--kubeconfig: none for {', '.join(missing)}; scenario {scenario.name!r} has the clusters "
            f"{', '.join(names)}, and each needs one: --kubeconfig {missing[0]}=FILE"
        )
    return {name: given[name] for name in names}


def kubectl() -> str:
    """Return the kubectl that a person would call here, or the one of the kept programs."""
    if found := shutil.which("kubectl"):
        return found
    try:
        return str(binaries.find().path("kubectl"))
    except (LookupError, RuntimeError):
        raise LookupError("there is no kubectl here; install it into your PATH") from None
