"""What container runtimes keep of attachments: libcni's cache, and the records of `concorde-networks`.

Source: libcni, api.go (cachedInfo, cacheAdd): `results/<network>-<container>-<interface>` of its directory is
a JSON object with the configuration list (base64), what the runtime passed beside it, and the result.
"""

from __future__ import annotations

import os
from binascii import Error as Base64Error
from binascii import a2b_base64

from . import files, names, requests, results, strict_json
from .cni import TYPE, VERSIONS, CniError, in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

DEFAULT = "/var/lib/cni/results"
FURTHER = "/run/concorde-networks/attached"  # a directory for each network
KIND = "cniCacheV1"
_LONGEST = 4 << 20


class Kept:
    """One attachment by this plugin as its runtime knows it.

    `document` is the network configuration that ADD was given; `follows` says that another plugin had made
    the interface before it; `addresses` are the result's, with their prefix lengths; `netns` is the file of
    the pod's network namespace, as the result has it. `uid` is the pod's, if the runtime told it, and
    `is_further` says that concorde-networks was the runtime.
    """

    def __init__(
        self,
        document: dict[str, Any],
        follows: bool,
        container: str,
        interface: str,
        pod: str,
        addresses: list[str],
        path: str,
        netns: str = "",
        uid: str = "",
        is_further: bool = False,
    ) -> None:
        self.document = document
        self.follows = follows
        self.container = container
        self.interface = interface
        self.pod = pod
        self.addresses = addresses
        self.path = path
        self.netns = netns
        self.uid = uid
        self.is_further = is_further


def usual() -> list[str]:
    """The directories of runtimes that were told nothing else."""
    try:
        return [DEFAULT, *(entry.path for entry in os.scandir(FURTHER) if entry.is_dir())]
    except OSError:
        return [DEFAULT]


def read(directories: Iterable[str]) -> tuple[list[Kept], list[str]]:
    """All attachments by this plugin, the newest first, and in words what could not be read."""
    kept: list[tuple[float, Kept]] = []
    faults = []
    for directory in directories:
        try:
            found = sorted(name for name in os.listdir(directory) if name[0] != ".")
        except OSError as error:
            faults.append(in_words(error))
            continue
        for path in (f"{directory}/{name}" for name in found):
            try:
                kept += [
                    (os.stat(path).st_mtime, one) for one in attachments(files.read(path, _LONGEST), path)
                ]
            except OSError as error:
                faults.append(in_words(error))
            except CniError as error:
                faults.append(f"{path}: {error.msg.partition(': ')[2]}")
            except ValueError as error:
                faults.append(f"{path} {error}")
    kept.sort(key=lambda pair: -pair[0])
    return [one for _, one in kept], faults


def attachments(content: bytes, path: str) -> list[Kept]:
    """The attachments by this plugin that a file tells of. Raises CniError and ValueError, with words."""
    info = strict_json.decode(content)
    if "networks" in info and "kind" not in info:
        return _further(info, path)
    if info.get("kind") != KIND:
        return []
    container, interface = str(info.get("containerId")), str(info.get("ifName"))
    if not (names.is_identifier(container) and names.is_interface(interface)):
        raise ValueError("names no container and interface")
    try:
        network = strict_json.decode(a2b_base64(str(info.get("config"))))
    except Base64Error as error:
        raise ValueError("has no network configuration") from error
    plugins = network.get("plugins", [network])  # a single configuration is none in a list
    if not isinstance(plugins, list) or not all(isinstance(plugin, dict) for plugin in plugins):
        raise ValueError("has no list of plugins")
    arguments = _arguments(info.get("cniArgs"))
    pod, uid = requests.pod_name(arguments), requests.argument(arguments, "K8S_POD_UID")
    listed = [str(ip.get("address")) for ip in results.entries_of(info.get("result"), "ips")]
    netns = results.sandbox_of(info.get("result"), interface)
    return [
        Kept(
            _document(network, plugin, info, at > 0),
            at > 0,
            container,
            interface,
            pod,
            listed,
            path,
            netns,
            uid,
        )
        for at, plugin in enumerate(plugins)
        if plugin.get("type") == TYPE
    ]


def _further(record: dict[str, Any], path: str) -> list[Kept]:
    """Of a record of `concorde-networks`, which is a runtime itself: what this plugin attached for it."""
    found = []
    container, pod = str(record.get("container")), str(record.get("pod", ""))
    for network in results.entries_of(record, "networks"):
        interface, answers = str(network.get("interface")), results.entries_of(network, "results")
        if not (names.is_identifier(container) and names.is_interface(interface)):
            raise ValueError("names no container and interface")
        for at, (plugin, answer) in enumerate(zip(results.entries_of(network, "plugins"), answers)):
            if plugin.get("type") != TYPE:
                continue
            document = {**plugin, "prevResult": answers[at - 1]} if at else plugin
            listed = [str(ip.get("address")) for ip in results.entries_of(answer, "ips")]
            netns = results.sandbox_of(answer, interface)
            found.append(
                Kept(document, at > 0, container, interface, pod, listed, path, netns, is_further=True)
            )
    return found


def _document(
    network: dict[str, Any], plugin: dict[str, Any], info: dict[str, Any], follows: bool
) -> dict[str, Any]:
    """What the runtime gave the plugin on its standard input (libcni, buildOneConfig)."""
    declared, offered = plugin.get("capabilities"), info.get("capabilityArgs")
    passed = {}
    if isinstance(declared, dict) and isinstance(offered, dict):
        passed = {name: value for name, value in offered.items() if declared.get(name) is True}
    document = {key: value for key, value in plugin.items() if key != "capabilities"}
    version = network.get("cniVersion")
    document["cniVersion"] = version if version in VERSIONS else VERSIONS[0]
    document["name"] = network.get("name")
    if passed:
        document["runtimeConfig"] = passed
    if follows:
        document["prevResult"] = info.get("result")
    return document


def _arguments(pairs: object) -> str:
    """CNI_ARGS of the pairs that libcni keeps."""
    if not isinstance(pairs, list):
        return ""
    return ";".join("=".join(map(str, pair)) for pair in pairs if isinstance(pair, list))
