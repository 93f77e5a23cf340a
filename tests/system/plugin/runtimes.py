"""What a runtime keeps of attachments, as libcni does it, for tests that call the plugin directly."""

from __future__ import annotations

from testbed.runtime.cni import Attachment, NetworkList, cached, cached_name
from tests.system.plugin.conftest import Document, Node

CACHE = "/run/cache"
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
OF_THE_CALL = ("name", "cniVersion", "runtimeConfig", "prevResult", "cni.dev/valid-attachments")


def listed(configuration: Document, before: Document | None = None) -> NetworkList:
    """The list of which a call got this configuration; `before` is the plugin before it there."""
    plugin = {key: value for key, value in configuration.items() if key not in OF_THE_CALL}
    plugin["capabilities"] = {ANNOTATIONS: True, "bandwidth": True}
    plugins = [plugin] if before is None else [before, plugin]
    return NetworkList(configuration["name"], plugins, configuration["cniVersion"])


def attachment(pod: str, configuration: Document, arguments: str = "") -> Attachment:
    given = dict(pair.split("=") for pair in filter(None, arguments.split(";")))
    capabilities = configuration.get("runtimeConfig", {})
    return Attachment(pod, f"/run/netns/{pod}", capabilities=capabilities, arguments=given)


def entry(
    pod: str, configuration: Document, result: Document, before: Document | None = None, arguments: str = ""
) -> list[str]:
    """Name and content of the cache's file for an attachment."""
    network, attached = listed(configuration, before), attachment(pod, configuration, arguments)
    return [cached_name(network, attached), cached(network, attached, result)]


def keep(
    node: Node,
    pod: str,
    configuration: Document,
    result: Document,
    before: Document | None = None,
    arguments: str = "",
) -> None:
    """Keep an attachment, as libcni does when ADD has answered."""
    name, content = entry(pod, configuration, result, before, arguments)
    node.run("sh", "-c", f'mkdir -p {CACHE} && cat >{CACHE}/"$1"', "sh", name, stdin=content)


def attach(node: Node, pod: str, configuration: Document, arguments: str = "") -> Document:
    """ADD, and keep what it answered."""
    result = node.call("ADD", pod, configuration, arguments=arguments)
    assert "code" not in result, result
    keep(node, pod, configuration, result, arguments=arguments)
    return result
