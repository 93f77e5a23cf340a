"""NetworkAttachmentDefinitions, as another program keeps them on the node: NAMESPACE/NAME.json, each one.

So nobody has to be asked when a pod starts. A definition has a configuration, or it names a file of the
runtime's directory by its own name (the de-facto standard, 3.2).
"""

from __future__ import annotations

import os

from .. import files, names, pod_annotations, strict_json
from ..cni import TRY_AGAIN, VERSIONS, CniError, in_words, shown
from ..cni import TYPE as TYPE_OF_OURS
from ..configuration import invalid
from .settings import TYPE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .selection import Selection
    from .settings import Identity

    Plugin = dict[str, Any]  # what it gets on standard input, but for the previous result

_ENDS = (".conf", ".conflist", ".json")
_LONGEST = 1 << 20  # bytes; more than an object of the API may have


def plugins(selection: Selection, settings: Identity, version: str, given: dict[str, Any]) -> list[Plugin]:
    """What the plugins of the network are to get; `given` are the pod's annotations.

    `version` is CNI's, for a definition that names none. Raises CniError 11 if there is no such definition,
    7 with the path of what is wrong.
    """
    path = f"{settings.definitions}/{selection.namespace}/{selection.name}.json"
    network = _network(path, selection, settings)
    version = _version(path, network.get("cniVersion", version))
    name = _name(path, network.get("name", selection.name))
    found = [{**one, "cniVersion": version, "name": name} for one in _listed(f"{path}: spec.config", network)]
    offered = {**selection.asked, pod_annotations.CAPABILITY: _annotations(given, selection.interface)}
    for key in selection.asked:
        if not any(_declares(one, key) for one in found):
            raise invalid(f"{selection.path}.{key}", f"no plugin of {path} declares this capability")
    for name, interface in pod_annotations.promises(given).items():
        if interface == selection.interface and not any(map(_promises, found)):
            nobody = (
                f"no plugin {TYPE_OF_OURS} of {path} declares the capability {pod_annotations.CAPABILITY}"
            )
            raise invalid(pod_annotations.path(name), f"nobody would keep it: {nobody}")
    for one in found:
        passed = {key: value for key, value in offered.items() if _declares(one, key)}
        one.pop("capabilities", None)
        if passed:
            one["runtimeConfig"] = passed
        if selection.arguments:
            one["args"] = {"cni": selection.arguments}
    return found


def _annotations(given: dict[str, Any], interface: str) -> dict[str, Any]:
    """A pod's annotations as a plugin of a further interface gets them.

    Ours are about the first interface, but for those that name another behind a dot.
    """
    end = f".{interface}"
    found = {key: value for key, value in given.items() if not key.startswith(pod_annotations.OURS)}
    meant = [key for key in given if key.startswith(pod_annotations.OURS) and key.endswith(end)]
    return {**found, **{key[: -len(end)]: given[key] for key in meant}}


def _promises(plugin: Plugin) -> bool:
    return plugin["type"] == TYPE_OF_OURS and _declares(plugin, pod_annotations.CAPABILITY)


def _declares(plugin: Plugin, capability: str) -> bool:
    declared = plugin.get("capabilities")
    return isinstance(declared, dict) and declared.get(capability) is True


def _network(path: str, selection: Selection, settings: Identity) -> dict[str, Any]:
    try:
        definition = _object(path, files.read(path, _LONGEST))
    except FileNotFoundError:
        missing = f"there is no NetworkAttachmentDefinition {selection.namespace}/{selection.name}: no {path}"
        raise CniError(TRY_AGAIN, f"{selection.path}: {missing}") from None
    except ValueError as error:
        raise invalid(path, str(error)) from error
    spec = definition.get("spec")
    if spec is not None and not isinstance(spec, dict):
        raise invalid(f"{path}: spec", f"{shown(spec)} is not an object")
    config = (spec or {}).get("config", "")
    if not isinstance(config, str):
        raise invalid(f"{path}: spec.config", f"{shown(config)} is not a string")
    if config.strip():
        return _object(f"{path}: spec.config", config.encode(errors="replace"))
    return _on_disk(path, selection.name, settings.lists)


def _on_disk(path: str, name: str, directory: str) -> dict[str, Any]:
    """The first file of the runtime's directory with a network of that name."""
    try:
        found = sorted(file for file in os.listdir(directory) if file.endswith(_ENDS))
    except OSError as error:
        raise invalid(f"{path}: spec.config", f"is empty, and {in_words(error)}") from error
    for file in found:
        try:
            network = _object(file, files.read(f"{directory}/{file}", _LONGEST))
        except (OSError, ValueError, CniError):
            continue
        if network.get("name") == name:
            return network
    raise invalid(f"{path}: spec.config", f"is empty, and no file of {directory} has the name {name}")


def _object(path: str, content: bytes) -> dict[str, Any]:
    try:
        found = strict_json.value(content.decode())
    except ValueError as error:
        raise invalid(path, f"is not valid JSON: {str(error)[:200]}") from error
    if not isinstance(found, dict):
        raise invalid(path, f"{shown(found)} is not an object")
    return found


def _listed(path: str, network: dict[str, Any]) -> list[dict[str, Any]]:
    """Its plugins: those of a list, or what is a single one itself."""
    if "plugins" not in network:
        _require_plugin(path, network)
        return [network]
    listed = network["plugins"]
    if not isinstance(listed, list) or not listed:
        raise invalid(f"{path}.plugins", f"{shown(listed)} is not a list of plugins")
    for at, plugin in enumerate(listed):
        _require_plugin(f"{path}.plugins[{at}]", plugin)
    return listed


def _require_plugin(path: str, plugin: object) -> None:
    if not isinstance(plugin, dict):
        raise invalid(path, f"{shown(plugin)} is not an object")
    kind = plugin.get("type")
    if not isinstance(kind, str) or not names.is_identifier(kind):
        raise invalid(f"{path}.type", f"{shown(kind)} is not a plugin's name")
    if kind == TYPE:
        raise invalid(f"{path}.type", f"{TYPE} cannot stand for itself")


def _name(path: str, name: object) -> str:
    if not isinstance(name, str) or not names.is_identifier(name):
        raise invalid(f"{path}: spec.config.name", f"{shown(name)} is not a network name")
    return name


def _version(path: str, version: object) -> str:
    if version not in VERSIONS:
        supported = ", ".join(VERSIONS)
        raise invalid(f"{path}: spec.config.cniVersion", f"{shown(version)} is not one of {supported}")
    return str(version)
