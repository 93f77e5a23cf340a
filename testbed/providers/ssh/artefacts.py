"""The kinds of things a testbed makes on a machine, as they stand in its ledger."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from testbed.scenario.description import StateDirectory


class _Artefact(BaseModel):
    """Base of all kinds; as text it is what people know it by."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Link(_Artefact):
    """A network interface; its other end, and what is routed over it, go with it."""

    kind: Literal["link"] = "link"
    name: str

    def __str__(self) -> str:
        return f"interface {self.name}"


class Namespace(_Artefact):
    """A named network namespace: a pod or a container."""

    kind: Literal["namespace"] = "namespace"
    name: str

    def __str__(self) -> str:
        return f"network namespace {self.name}"


class Attached(_Artefact):
    """A pod's attachment to its network, which the CNI plugins undo: leases, classes, devices."""

    kind: Literal["attachment"] = "attachment"
    network: dict[str, Any]  # of testbed.runtime.cni.NetworkList
    attachment: dict[str, Any]  # of testbed.runtime.cni.Attachment
    directories: list[str]

    def __str__(self) -> str:
        return f"attachment of {self.attachment['container_id']}"


class Table(_Artefact):
    """An nftables table."""

    kind: Literal["table"] = "table"
    family: str
    name: str

    def __str__(self) -> str:
        return f"nftables table {self.family} {self.name}"


class Tree(_Artefact):
    """What shapes an interface of the machine's own; without it the kernel's default is back."""

    kind: Literal["tree"] = "tree"
    interface: str

    def __str__(self) -> str:
        return f"root qdisc of {self.interface}"


class Routes(_Artefact):
    """Routes by an interface of the machine's own into a network that had none."""

    kind: Literal["routes"] = "routes"
    network: str
    interface: str

    def __str__(self) -> str:
        return f"routes into {self.network} by {self.interface}"


class Setting(_Artefact):
    """A kernel setting, to be given back its former value unless somebody else has changed it since."""

    kind: Literal["setting"] = "setting"
    path: str
    value: str
    former: str

    def __str__(self) -> str:
        return f"{self.path} = {self.value} (was {self.former})"


class File(_Artefact):
    """A file."""

    kind: Literal["file"] = "file"
    path: str

    def __str__(self) -> str:
        return self.path


class State(_Artefact):
    """A directory in which CNI plugins keep their state, with all in it."""

    kind: Literal["state"] = "state"
    path: StateDirectory

    def __str__(self) -> str:
        return self.path


class Directory(_Artefact):
    """A directory that was not there; it stays if somebody else has put something into it."""

    kind: Literal["directory"] = "directory"
    path: str

    def __str__(self) -> str:
        return self.path


class Mount(_Artefact):
    """The mount that ``ip netns`` makes of its directory at first; it stays as long as that is used."""

    kind: Literal["mount"] = "mount"
    path: str

    def __str__(self) -> str:
        return f"mount {self.path}"


Artefact = Link | Namespace | Attached | Table | Tree | Routes | Setting | File | State | Directory | Mount
