"""What the rest of the testbed needs of a node: a place where commands run.

A provider supplies nodes; pod networks, orchestrators and traffic use nothing of them but this protocol. A
command is always a list of arguments with text on its standard input, never a string for a shell.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any, Protocol, TypeVar, runtime_checkable

# How long a command may take of which nothing else is said. Most end at once; this is for what never ends: on
# emulated machines with their hands full a search for a few programs took more than a minute, and so did the
# first question to an API, which is two dozen, because kubectl wants to know what there is.
RUN_SECONDS = 300.0

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Result:
    """What a command left."""

    status: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """Parse the output of ``ip -j`` and its like, for which no output at all is an empty list."""
        return json.loads(self.stdout or "[]")

    def checked(self, where: str, argv: Sequence[str]) -> Result:
        """Return it, if ``argv`` ended well. Raises CommandError."""
        if self.status != 0:
            raise CommandError(where, argv, self.status, self.stderr or self.stdout)
        return self


class CommandError(RuntimeError):
    """A command failed where it had to succeed; the message holds the node, the command and its own words."""

    def __init__(self, where: str, argv: Sequence[str], status: int | str, text: str) -> None:
        # A script among the arguments is known by its first words.
        command = " ".join(shorten(word, 60, placeholder=" ...") for word in argv)
        super().__init__(f"{where}: {command} ended with {status}: {text.strip() or 'no message'}")
        self.status = status


class Process(Protocol):
    """A command that goes on running; its output goes to files."""

    def release(self) -> None:
        """Send a line to a command that was started with ``held``."""

    def end_input(self) -> None:
        """End the standard input of a command that was started with ``held``."""

    def wait(self, timeout: float | None = None) -> int | None:
        """Return its exit status, or None if it has not ended after ``timeout`` seconds."""

    def kill(self) -> None:
        """End it and wait for its end; nothing happens if it has ended already."""


@dataclass(frozen=True)
class Route:
    """How commands get to a place: to which node, and by which command from there."""

    node: str
    command: tuple[str, ...] = ()

    def then(self, *command: str) -> Route:
        """Return the route that goes on from there by a command."""
        return Route(self.node, (*self.command, *command))


class Place(Protocol):
    """Somewhere commands run: a node, or a pod or container on one."""

    @property
    def name(self) -> str:
        """The name in the scenario."""

    @property
    def route(self) -> Route:
        """How commands get there."""

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = RUN_SECONDS,
    ) -> Result:
        """Run a command to its end, at most ``timeout`` seconds.

        Raises CommandError when it cannot be run or takes longer, and, with ``check``, when its exit status
        is not 0. ``env`` is added to a minimal environment; nothing of the caller's own gets through.
        """

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        """Start a command that ends with its caller at the latest; its output goes to local files.

        Its standard input is empty; with ``held`` it stays open, and ``release`` sends a line.
        ``held_back(argv)`` is a command that waits for that: it begins without the delay of getting there,
        once it has said, by an empty line among its errors, that it is there.
        """

    def attach(self, argv: Sequence[str], *, stdout: Path, stderr: Path) -> Process:
        """Start a client that ends with its standard input, which stays open; see testbed.access.remote."""


class Runs(ABC):
    """What places have in common: a command is run to its end, and its exit status is looked at.

    Where a place does not say how commands get there, routes begin there, and clients are held commands.
    """

    name: str

    @property
    def route(self) -> Route:
        """How commands get there."""
        return Route(self.name)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = RUN_SECONDS,
    ) -> Result:
        """Run a command there to its end; see Place."""
        done = self._run(argv, stdin, env or {}, timeout)
        return done.checked(self.name, argv) if check else done

    @abstractmethod
    def _run(self, argv: Sequence[str], stdin: str, env: Mapping[str, str], timeout: float) -> Result:
        """Run a command there to its end, whatever its exit status is. Raises CommandError."""

    @abstractmethod
    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        """Start a command there; see Place."""

    def attach(self, argv: Sequence[str], *, stdout: Path, stderr: Path) -> Process:
        """Start a client there; see Place."""
        return self.start(argv, stdout=stdout, stderr=stderr, held=True)


class Node(Place, Protocol):
    """A machine, real or not."""

    @property
    def cgroup(self) -> str:
        """The cgroup, in every hierarchy, below which it may make its own; they are removed with the node."""


@runtime_checkable
class Apart(Protocol):
    """A node that has files of its own, and so does not see this machine's."""

    def bring(self, directory: Path) -> str:
        """Copy a directory there, and return its path on the node. Raises CommandError."""


def path_on(node: Node, directory: Path) -> str:
    """Return where a node finds a directory of this machine. Raises CommandError."""
    return node.bring(directory) if isinstance(node, Apart) else str(directory)


def held_back(argv: Sequence[str]) -> list[str]:
    """Return a command that becomes ``argv`` once a line comes from its standard input.

    An empty line on its standard error says that it waits for that.
    """
    return ["sh", "-c", 'echo >&2 && read -r _ && exec "$@" </dev/null', "sh", *argv]


def waits(stderr: Path) -> bool:
    """Tell from its standard error whether a command made by ``held_back`` waits to be released.

    What leads to its place may have said something before, which is not that.
    """
    return "" in stderr.read_text(encoding="utf-8", errors="replace").splitlines()


@dataclass(frozen=True)
class Within(Runs):
    """A place within a node, to which a command leads."""

    name: str
    node: Place

    @property
    def entrance(self) -> list[str]:
        """How commands get from the node to the place."""
        raise NotImplementedError

    @property
    def route(self) -> Route:
        """How commands get there: by the node."""
        return self.node.route.then(*self.entrance)

    def _run(self, argv: Sequence[str], stdin: str, env: Mapping[str, str], timeout: float) -> Result:
        command = [*self.entrance, *argv]
        return self.node.run(command, stdin=stdin, env=env, check=False, timeout=timeout)

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        """Start a command there; see Place."""
        return self.node.start([*self.entrance, *argv], stdout=stdout, stderr=stderr, held=held)

    def attach(self, argv: Sequence[str], *, stdout: Path, stderr: Path) -> Process:
        """Start a client there; see Place."""
        return self.node.attach([*self.entrance, *argv], stdout=stdout, stderr=stderr)


@dataclass(frozen=True)
class InNamespace(Within):
    """A place within a node: one of its network namespaces, as a pod or a container has it."""

    node: Node
    namespace: str  # path of the network namespace on the node
    address: str  # its IPv4 address
    host_interface: str  # the node's end of its veth pair
    published: str = ""  # see PodPlace
    interface: str = "eth0"

    @property
    def entrance(self) -> list[str]:
        """How commands get from the node into the namespace."""
        return ["nsenter", f"--net={self.namespace}", "--"]


# A machine's own files, but for one. Constant text: the file in whose place it is comes first.
WITH_RESOLVER = 'mount --bind "$0" /etc/resolv.conf; exec "$@"'


@dataclass(frozen=True)
class Resolving(InNamespace):
    """Such a place whose names are asked for as a file on the node says, in the place of the node's own."""

    resolver: str = ""  # path of what is its /etc/resolv.conf

    @property
    def entrance(self) -> list[str]:
        """How commands get from the node into the namespace, and into a view of its files."""
        return [*super().entrance, "unshare", "--mount", "sh", "-c", WITH_RESOLVER, self.resolver]


@dataclass(frozen=True)
class Entered(Within):
    """A place within a node to which a command leads that is known from before: see testbed.lasting.

    It may be a pod (PodPlace) of which no more is known than its address.
    """

    command: tuple[str, ...]
    address: str = ""
    host_interface: str = ""
    published: str = ""
    interface: str = "eth0"

    @property
    def entrance(self) -> list[str]:
        """How commands get from the node to the place."""
        return list(self.command)


def in_parallel(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return ``[function(item) for item in items]``, computed at the same time.

    The first exception, in the order of the items, is raised once all have ended, so nothing goes on behind
    the caller's back.
    """
    work = list(items)
    if not work:
        return []
    with ThreadPoolExecutor(max_workers=min(16, len(work))) as pool:
        futures = [pool.submit(function, item) for item in work]
    return [future.result() for future in futures]


class PodPlace(Place, Protocol):
    """A running pod."""

    @property
    def address(self) -> str:
        """Its IPv4 address, by which its own node's reach it."""

    @property
    def published(self) -> str:
        """The address at which it is reached from other nodes; empty if that is its own."""

    @property
    def interface(self) -> str:
        """The interface by which it sends."""

    @property
    def host_interface(self) -> str:
        """The node's end of its veth pair."""


@dataclass(frozen=True)
class Feature:
    """A kernel feature, and the command that shows whether it is there; it leaves what it makes."""

    name: str
    command: tuple[str, ...]
    option: str  # the kernel's configuration option
    stdin: str = ""
    needed: bool = True


def lacks(place: Place, feature: Feature) -> str:
    """Return, in words, what a kernel needs to have a feature; nothing if it has it."""
    try:
        place.run(feature.command, stdin=feature.stdin)
    except CommandError as error:
        return f"the kernel needs {feature.option} ({error})"
    return ""
