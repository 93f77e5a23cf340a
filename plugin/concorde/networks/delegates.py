"""Calling other plugins, as libcni does: of one network, plugin after plugin.

A network is an entry of a record: `name`, `interface`, `path` (where the pod
asked for it), `plugins` (what each gets), and once it was asked for
`results` (what each answered). A plugin inherits the attachment's lock (see locks.py).
"""

from __future__ import annotations

import os

from .. import pod_annotations, strict_json, tools
from ..cni import (
    CHECK_FAILED,
    COMMAND_FAILED,
    INTERNAL,
    NO_BANDWIDTH,
    TYPE,
    VERB_SINCE,
    CniError,
    at_least,
    shown,
)
from ..configuration import invalid
from ..host_interfaces import of_pod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..requests import Request

    Network = dict[str, Any]

_PATH = "CNI_PATH"
_PASSED = ("CNI_ARGS", _PATH, "PATH")


def require_programs(network: Network) -> None:
    """See to it that its plugins are there, before anything begins. Raises CniError 7."""
    for plugin in network["plugins"]:
        if not _program(plugin):
            missing = f"no plugin {plugin['type']} in {os.environ.get(_PATH, '')}"
            raise invalid(network["path"], f"{network['name']}: {missing}")


def attach(network: Network, request: Request) -> None:
    """ADD by each plugin; what they answer becomes the network's results. Raises CniError."""
    results: list[dict[str, Any]] = network.setdefault("results", [])
    for plugin in network["plugins"]:
        document = {**plugin, "prevResult": results[-1]} if results else plugin
        answer = _call("ADD", network, document, request, request.netns)
        if answer is None:
            raise _of(network, plugin, CniError(COMMAND_FAILED, "answered nothing"))
        results.append(answer)


def detach(network: Network, request: Request, netns: str) -> None:
    """DEL by each plugin, the last one first, and to the end. Raises the first CniError.

    What a plugin says that never answered an ADD, and has left no interface, is no error: it says it of a
    definition that it cannot read, each time.
    """
    first: CniError | None = None
    results = network.get("results", ())
    for at, plugin in reversed(list(enumerate(network["plugins"]))):
        document = {**plugin, "prevResult": results[-1]} if results else plugin
        try:
            _delete(network, document, request, netns)
        except CniError as error:
            if at < len(results) or (netns and is_there(netns, network["interface"])):
                first = first or error
    if first is not None:
        raise first


def _delete(network: Network, document: dict[str, Any], request: Request, netns: str) -> None:
    """What misses its interface in the pod (host-device) is asked again as if the pod's namespace were gone.

    Then there is nothing to be missed, and what else there is is given back.
    """
    try:
        _call("DEL", network, document, request, netns)
    except CniError:
        if not netns or is_there(netns, network["interface"]):
            raise
        _call("DEL", network, document, request, "")


def check(network: Network, request: Request) -> None:
    """CHECK by each plugin whose version knows it. Raises CniError."""
    if not is_there(request.netns, network["interface"]):
        raise CniError(CHECK_FAILED, f"{network['interface']} ({network['name']}) is gone")
    for plugin in network["plugins"]:
        if at_least(plugin["cniVersion"], VERB_SINCE["CHECK"]) and not plugin.get("disableCheck"):
            document = {**plugin, "prevResult": network["results"][-1]}
            _call("CHECK", network, document, request, request.netns)


def is_there(netns: str, interface: str) -> bool:
    """Whether a pod has an interface."""
    try:
        of_pod(netns, interface)
    except OSError:
        return False
    return True


def _call(
    verb: str, network: Network, document: dict[str, Any], request: Request, netns: str
) -> dict[str, Any] | None:
    program = _program(document)
    if not program:
        missing = f"not in {os.environ.get(_PATH, '')}"
        raise _of(network, document, CniError(COMMAND_FAILED, missing))
    environment = {key: os.environ[key] for key in _PASSED if key in os.environ}
    environment.update(
        CNI_COMMAND=verb,
        CNI_CONTAINERID=request.container,
        CNI_NETNS=netns,
        CNI_IFNAME=network["interface"],
    )
    running = tools.Running([program], environment=environment)
    running.give(strict_json.encode(document).decode())
    status, output, errors = running.end()
    try:
        answer = strict_json.decode(output.encode()) if output.strip() else None
    except CniError:
        said = output.strip().partition("\n")[0][:200]
        problem = CniError(COMMAND_FAILED, f"{verb}: not an answer: {shown(said)}")
        raise _of(network, document, problem) from None
    if status != 0:
        raise _of(network, document, _told(verb, answer or {}, status, errors, document["type"] == TYPE))
    return answer


def _told(verb: str, answer: dict[str, Any], status: int, errors: str, is_ours: bool) -> CniError:
    """The error that a plugin answered. Codes from 100 on are its own: who called us knows ours alone."""
    code, said = answer.get("code"), answer.get("msg")
    if not isinstance(said, str) or not said:
        said = errors.strip().partition("\n")[0][:200] or f"ended with status {status}"
    if not isinstance(code, int) or code <= 0 or (code >= INTERNAL and not is_ours):
        code = COMMAND_FAILED
    details = answer.get("details")
    return CniError(code, f"{verb}: {said}", details if isinstance(details, str) else "")


def _of(network: Network, plugin: dict[str, Any], error: CniError) -> CniError:
    where = f"{network['interface']} ({network['name']}): {plugin['type']}"
    said = error.msg
    if plugin["type"] == TYPE:  # which knows of one interface, and so of no other's annotations
        for kind in pod_annotations.PROMISES:
            annotation = pod_annotations.path(f"{kind}.{network['interface']}")
            said = said.replace(pod_annotations.path(kind), annotation)
            if error.code == NO_BANDWIDTH and kind == pod_annotations.GUARANTEE:
                where = f"{annotation}: {where}"
    return CniError(error.code, f"{where}: {said}", error.details)


def _program(plugin: dict[str, Any]) -> str:
    return tools.found_in(os.environ.get(_PATH, ""), plugin["type"])
