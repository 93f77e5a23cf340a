"""A container runtime's side of CNI: how plugins are called, as libcni calls them.

Any plugin or chain of plugins runs in the same experiment, because nothing here knows Concorde (CNI
specification 1.0.0, sections 2 "Execution protocol" and 4 "Plugin delegation"; libcni, ``api.go``).
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.access.place import Node

Json = dict[str, Any]
# The capability by which containerd hands on all of a pod's annotations.
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
RESULTS = "/var/lib/cni/results"  # where libcni keeps what plugins answered, until they are called again


class CniError(RuntimeError):
    """A plugin refused; the message holds its own words."""


@dataclass(frozen=True)
class NetworkList:
    """A network configuration list, as it stands in a ``.conflist`` file."""

    name: str
    plugins: Sequence[Json]
    cni_version: str = "1.0.0"
    disable_check: bool = False  # the runtime is not to call CHECK (specification, section 1)


@dataclass(frozen=True)
class Attachment:
    """One container's interface to a network."""

    container_id: str
    namespace: str
    interface: str = "eth0"
    # What the runtime offers to plugins that declare the capability of that name.
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Runtime:
    """Calls the plugins of a network list on a node; ``directories`` is CNI_PATH.

    ``cache`` is the directory there in which it keeps what it knows of attachments, if it is to: plugins that
    lost their own state can find it there (libcni's ``results``).
    """

    node: Node
    directories: Sequence[str]
    cache: str | None = None

    def add(self, network: NetworkList, attachment: Attachment) -> Json:
        """Attach a container, plugin after plugin; return the last one's result. Raises CniError."""
        result: Json | None = None
        for plugin in network.plugins:
            result = self._call("ADD", network, plugin, attachment, result)
        return result or {}

    def keep(self, attached: Sequence[tuple[NetworkList, Attachment, Json]]) -> None:
        """Write down what is known of attachments that were made, as plugins may look for it."""
        if self.cache is None or not attached:
            return
        names = [cached_name(network, attachment) for network, attachment, _ in attached]
        texts = [f"{cached(*one)}\n" for one in attached]
        self.node.run(["sh", "-c", KEEP, "sh", self.cache, *names], stdin="".join(texts))

    def check(self, network: NetworkList, attachment: Attachment, result: Json) -> None:
        """Ask every plugin whether all is as ADD left it. Raises CniError if one says it is not."""
        if network.disable_check:
            return
        for plugin in network.plugins:
            self._call("CHECK", network, plugin, attachment, result)

    def delete(self, network: NetworkList, attachment: Attachment, result: Json | None) -> None:
        """Detach a container, last plugin first. Raises CniError."""
        for plugin in reversed(network.plugins):
            self._call("DEL", network, plugin, attachment, result)
        if self.cache is not None:
            self.node.run(["rm", "-f", f"{self.cache}/{cached_name(network, attachment)}"])

    def _call(
        self, command: str, network: NetworkList, plugin: Json, attachment: Attachment, previous: Json | None
    ) -> Json | None:
        done = self.node.run(
            ["sh", "-c", FIND_AND_EXECUTE, "sh", plugin["type"], *self.directories],
            stdin=json.dumps(_configuration(network, plugin, attachment, previous)),
            env=self._environment(command, attachment),
            check=False,
        )
        answer = _parse(done.stdout)
        if done.status != 0:
            message = answer.get("msg") if isinstance(answer, dict) else None
            details = answer.get("details") if isinstance(answer, dict) else None
            # A plugin that crashed says so first, and then at length where.
            crash = (done.stderr.strip() or done.stdout.strip()).partition("\n")[0]
            text = ": ".join(filter(None, (message, details))) or crash
            raise CniError(
                f'plugin type="{plugin["type"]}" failed ({command.lower()}): {text or "no message"}'
            )
        return answer if isinstance(answer, dict) else None

    def _environment(self, command: str, attachment: Attachment) -> dict[str, str]:
        return {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": attachment.container_id,
            "CNI_NETNS": attachment.namespace,
            "CNI_IFNAME": attachment.interface,
            "CNI_PATH": ":".join(self.directories),
            "CNI_ARGS": ";".join(f"{key}={value}" for key, value in attachment.arguments.items()),
        }


# The plugin is looked up where it runs, on the node, in the first directory that has it. Constant text: names
# and directories are its arguments.
FIND_AND_EXECUTE = """
type=$1; shift
for directory in "$@"; do [ -x "$directory/$type" ] && exec "$directory/$type"; done
echo "no plugin $type in $*" >&2
exit 127
"""


# Each file is there as a whole or not at all. The arguments are a directory, then the files' names; the
# standard input has a line for each.
KEEP = """
umask 077
new=.new-$$
mkdir -p "$1/$new" && cd "$1" || exit
shift
for name in "$@"; do
    IFS= read -r text && printf '%s' "$text" >"$new/$name" || exit
done
mv "$new"/* . && rmdir "$new"
"""


def host_interface(result: Json) -> str:
    """Return the node's end of a pod's pair: in a result it stands before the pod's own, outside of the pod.

    Empty for a pod without one, as with macvlan.
    """
    position = result["ips"][0].get("interface", 0)
    before: Json = result["interfaces"][position - 1] if position else {}
    return "" if before.get("sandbox") else str(before.get("name", ""))


def address(result: Json) -> str:
    """Return the pod's address in a result."""
    return str(result["ips"][0]["address"]).partition("/")[0]


def cached_name(network: NetworkList, attachment: Attachment) -> str:
    """Return the name of the file in which libcni keeps an attachment."""
    return f"{network.name}-{attachment.container_id}-{attachment.interface}"


def cached(network: NetworkList, attachment: Attachment, result: Json) -> str:
    """Return what libcni keeps of an attachment (``api.go``, cachedInfo)."""
    configuration = {"cniVersion": network.cni_version, "name": network.name, "plugins": network.plugins}
    info = {
        "kind": "cniCacheV1",
        "containerId": attachment.container_id,
        "config": b64encode(json.dumps(configuration).encode()).decode(),
        "ifName": attachment.interface,
        "networkName": network.name,
        "cniArgs": list(attachment.arguments.items()),
        "capabilityArgs": attachment.capabilities,
        "result": result,
    }
    return json.dumps(info)


def _configuration(network: NetworkList, plugin: Json, attachment: Attachment, previous: Json | None) -> Json:
    """Return a plugin's standard input: its entry of the list, completed by the runtime."""
    declared = plugin.get("capabilities", {})
    offered = {name: value for name, value in attachment.capabilities.items() if declared.get(name)}
    return {
        **{key: value for key, value in plugin.items() if key != "capabilities"},
        "name": network.name,
        "cniVersion": network.cni_version,
        **({"runtimeConfig": offered} if offered else {}),
        **({"prevResult": previous} if previous is not None else {}),
    }


def _parse(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class Attached:
    """What libcni keeps of a pod's attachment, on its node or in the cell of its cluster there."""

    node: Node
    cached: Mapping[str, Any]

    @property
    def container(self) -> str:
        """The identity of the pod's sandbox."""
        return str(self.cached["containerId"])

    @property
    def arguments(self) -> dict[str, str]:
        """The CNI_ARGS of its ADD."""
        return dict(self.cached["cniArgs"])

    @property
    def result(self) -> dict[str, Any]:
        """The last plugin's result."""
        result: dict[str, Any] = self.cached["result"]
        return result

    @property
    def namespace(self) -> str:
        """The path of the pod's network namespace: of the interface that has its address (section 5)."""
        position = self.result["ips"][0].get("interface", 0)
        return str(self.result["interfaces"][position]["sandbox"])

    @property
    def host_interface(self) -> str:
        """The node's end of its pair; empty without one."""
        return host_interface(self.result)

    @property
    def address(self) -> str:
        """The pod's address."""
        return address(self.result)

    def complaint(self, network: NetworkList, directories: Sequence[str]) -> str | None:
        """Let the plugins, found in these directories, check it; return what they say is wrong."""
        attachment = Attachment(
            container_id=self.container,
            namespace=self.namespace,
            interface=self.cached["ifName"],
            capabilities=self.cached.get("capabilityArgs") or {},
            arguments=self.arguments,
        )
        try:
            Runtime(self.node, tuple(directories)).check(network, attachment, self.result)
        except CniError as error:
            return str(error)
        return None


# A line for each file (libcni/api.go, CacheDir); an empty one for what has gone meanwhile.
SHOW_RESULTS = 'for file in "$1"/*-eth0; do [ ! -e "$file" ] || { cat "$file"; echo; }; done'


def attachments(node: Node) -> Iterator[Attached]:
    """Yield what libcni keeps, on a node or in a cell, of every attachment to a network of pods."""
    for line in node.run(["sh", "-c", SHOW_RESULTS, "sh", RESULTS], check=False).stdout.splitlines():
        if line:
            yield Attached(node, json.loads(line))
