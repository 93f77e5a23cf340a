"""The clusters that kubeconfigs lead to."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from testbed.access.local import Local
from testbed.kubernetes.client import Client
from testbed.scenario import Scenario, reading, texts
from testbed.supplies import binaries

NAMESPACE = "concorde-bench"


class Access(NamedTuple):
    """A kubeconfig, and which of its contexts is meant; empty: its current one."""

    file: Path
    context: str = ""

    @classmethod
    def of(cls, text: str) -> Access:
        """Return what ``FILE`` or ``FILE@CONTEXT`` means; a context's name may have an ``@`` too."""
        if not Path(text).is_file():
            for at in (match.start() for match in re.finditer("@", text)):
                if Path(text[:at]).is_file():
                    return cls(Path(text[:at]), text[at + 1 :])
        return cls(Path(text))

    def __str__(self) -> str:
        return f"{self.file}@{self.context}" if self.context else str(self.file)

    def fault(self) -> str | None:
        """Return why it leads nowhere, as far as that can be told without asking; None if it may."""
        if not self.file.is_file():
            return "no such file"
        if not self.context:
            return None
        try:
            known = [str(one["name"]) for one in reading.parse(texts.read(self.file))["contexts"]]
        except (texts.TextError, reading.ReadingError, LookupError, TypeError):
            return f"{self.file} is not a kubeconfig with contexts"
        if self.context in known:
            return None
        return f"no context {self.context!r} in {self.file} (contexts: {', '.join(known) or 'none'})"


@dataclass(frozen=True)
class Outside(Client):
    """Asks a cluster's API from this machine, about one namespace; kubectl keeps its cache where it likes."""

    namespace: str = NAMESPACE
    context: str = ""  # of the kubeconfig; empty: its current one

    @classmethod
    def by(cls, access: Access, cluster: str, program: str) -> Outside:
        """Return what asks the cluster that a kubeconfig leads to; ``program`` is kubectl."""
        return cls(cluster, Local(), program, str(access.file), context=access.context)

    @property
    def access(self) -> Access:
        """The kubeconfig and the context by which it asks."""
        return Access(Path(self.kubeconfig), self.context)

    def command(self, *arguments: str) -> list[str]:
        """Return a command line of kubectl."""
        options = [f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}"]
        if self.context:
            options.append(f"--context={self.context}")
        return [self.kubectl, *options, *arguments]


def outside(text: str) -> Outside:
    """Return what asks the one cluster that ``FILE`` or ``FILE@CONTEXT`` leads to. Raises LookupError."""
    access = Access.of(text)
    if fault := access.fault():
        raise LookupError(f"--kubeconfig {text}: {fault}")
    return Outside.by(access, str(access), kubectl())


def clients(scenario: Scenario, kubeconfigs: str) -> dict[str, Outside]:
    """Return what asks each cluster of a scenario, given kubeconfigs as ``accesses`` takes them."""
    program = kubectl()
    return {
        cluster: Outside.by(access, cluster, program)
        for cluster, access in accesses(scenario, kubeconfigs).items()
    }


def joined(kubeconfigs: Iterable[str]) -> str:
    """Return kubeconfigs as one text, separated by commas; one within a path has a backslash before it."""
    return ",".join(re.sub(r"[\\,]", r"\\\g<0>", one) for one in kubeconfigs)


def separated(kubeconfigs: str) -> list[str]:
    """Return what ``joined`` has joined."""
    return [re.sub(r"\\(.)", r"\1", one) for one in re.findall(r"(?:\\.|[^,\\])+", kubeconfigs)]


def accesses(scenario: Scenario, kubeconfigs: str) -> dict[str, Access]:
    """Return each cluster's kubeconfig. Raises LookupError.

    They are separated as by ``joined``, each named like ``a=FILE`` or in the order of the scenario's
    clusters, and may say which context is meant: ``a=FILE@CONTEXT``.
    """
    names = list(scenario.clusters)
    given: dict[str, Access] = {}
    for index, word in enumerate(separated(kubeconfigs)):
        name, equals, rest = word.partition("=")
        # A path may have an equals sign too.
        if not equals or (name not in names and Access.of(word).file.is_file()):
            name, rest = names[index] if index < len(names) else f"number {index + 1}", word
        if name not in names:
            raise LookupError(f"--kubeconfig {word}: no cluster {name!r} (clusters: {', '.join(names)})")
        if name in given:
            raise LookupError(f"--kubeconfig {word}: cluster {name!r} has one already")
        access = Access.of(rest)
        if fault := access.fault():
            raise LookupError(f"--kubeconfig {word}: {fault}")
        given[name] = access._replace(file=access.file.absolute())
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
