"""ADD, DEL, CHECK, GC and STATUS of `concorde-networks`."""

from __future__ import annotations

import os

from .. import host_interfaces, names, namespaces, pod_annotations, results, rtnetlink, state_files, tools
from ..cni import (
    ALREADY_ATTACHED,
    CHECK_FAILED,
    COMMAND_FAILED,
    NOT_AVAILABLE,
    CniError,
    in_words,
)
from ..configuration import invalid, table
from ..locks import AttachmentLock, NodeLock, where_ours
from ..requests import Request, valid_attachments
from . import definitions, delegates, forwarding, gateways, records, routes, selection, translation
from .settings import TYPE, Identity, Settings, node_of, records_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..routing import Block
    from .delegates import Network
    from .records import Record
    from .routes import Way
    from .translation import Forward

_NO_NAMESPACE = "default"  # of Kubernetes, for a pod of which no runtime says where it is


def add(request: Request) -> dict[str, Any]:
    """Attach the pod to the networks that it asks for, all or none.

    Returns the previous result with the interfaces added, whose addresses are left out: a runtime would take
    one of them for the pod's. Raises CniError, tools.CommandError, OSError.
    """
    settings = Settings(request.document)
    previous = _previous(request)
    networks, declared = _asked(request, settings)
    if networks:
        with AttachmentLock(settings.directory, request.container, request.interface):
            _attach(request, settings, previous, networks, declared)
    answer = results.of_previous(request.version, previous)
    if networks:
        added = [_end(network, request.netns) for network in networks]
        answer["interfaces"] = [*results.entries_of(previous, "interfaces"), *added]
    return answer


def delete(request: Request) -> None:
    """Detach it. Raises CniError when a plugin could not; then a repeat asks that one again."""
    settings = Identity(request.document)
    with where_ours(lambda: AttachmentLock(settings.directory, request.container, request.interface)):
        record = records.read(records.path(settings.directory, request.container, request.interface))
        if record is None:
            _detach_unknown(settings, request)
        else:
            _detach(settings, record, request, request.netns)


def check(request: Request) -> None:
    """See to it that all is as ADD made it. Raises CniError 104, or what a plugin answers."""
    settings = Settings(request.document)
    _previous(request)
    networks, _ = _asked(request, settings)
    record = records.read(records.path(settings.directory, request.container, request.interface))
    if record is None:
        if networks:
            raise CniError(CHECK_FAILED, f"{request.container} is not attached to {networks[0]['name']}")
        return
    for network in record["networks"]:
        delegates.check(network, request)
    routes.check(request.netns, request.interface, routes.blocks(settings.cluster))
    if "forwarding" in record:  # written since versions that switch it
        forwarding.check(request.netns, record["forwarding"])
    if record["forward"]:
        _require_table(request.netns)
    if gateways.table([record]) != translation.REMOVED:
        _require_table("")


def gc(request: Request) -> None:
    """Detach what the runtime no longer knows, going on after an error. Raises CniError with all errors."""
    settings = Identity(request.document)
    valid = valid_attachments(request.document)
    errors = []
    for container, interface in records.kept(settings.directory):
        if (container, interface) not in valid:
            try:
                delete(Request(request.document, container, interface, ""))
            except (CniError, OSError, tools.CommandError) as error:
                errors.append(in_words(error))
    if errors:
        raise CniError(COMMAND_FAILED, errors[0], "\n".join(errors))


def status(request: Request) -> None:
    """Whether an ADD could be served now. Raises CniError 50, or 7 for a bad key."""
    settings = Settings(request.document)
    try:
        tools.find("nft")
        state_files.directory(settings.directory)
        if os.path.exists(settings.definitions):
            os.listdir(settings.definitions)
    except (CniError, OSError) as error:
        raise CniError(NOT_AVAILABLE, in_words(error)) from error


def _previous(request: Request) -> dict[str, Any]:
    previous = table(request.document, "prevResult")
    if previous is None:
        raise invalid("prevResult", f"missing: {TYPE} stands behind what makes the first interface")
    return previous


def _namespace(request: Request) -> str:
    return request.pod.partition("/")[0] or _NO_NAMESPACE


def _kept_at(request: Request, settings: Identity) -> str:
    """The file of the list that the pod names, if it has none itself. Raises CniError 7."""
    annotation = pod_annotations.of(request.document).get(translation.FORWARD)
    return translation.kept_at(annotation, settings.forwards, _namespace(request))


def _asked(request: Request, settings: Identity) -> tuple[list[Network], list[Forward]]:
    """The networks, whole, and what is declared. Raises CniError 7 and 11."""
    given = pod_annotations.of(request.document)
    namespace = _namespace(request)
    selections = selection.selected(given.get(selection.NETWORKS), namespace, request.interface)
    list_path = _kept_at(request, settings)
    declared = (
        translation.kept(list_path) if list_path else translation.forwards(given.get(translation.FORWARD))
    )
    if declared and not selections:
        raise invalid(declared[0].path, f"the pod has no further interface: {selection.NETWORKS} names none")
    interfaces = [one.interface for one in selections]
    for name, interface in pod_annotations.promises(given).items():
        if interface not in interfaces:
            further = ", ".join(interfaces) or "none"
            raise invalid(
                pod_annotations.path(name), f"{interface} is no further interface of the pod: {further}"
            )
    found: list[Network] = []
    for one in selections:
        plugins = definitions.plugins(one, settings, request.version, given)
        name = f"{one.namespace}/{one.name}"
        found.append({"name": name, "interface": one.interface, "path": one.path, "plugins": plugins})
    return found, declared


def _attach(
    request: Request,
    settings: Settings,
    previous: dict[str, Any],
    networks: list[Network],
    declared: list[Forward],
) -> None:
    """Under the attachment's lock; what fails is undone."""
    if os.path.lexists(records.path(settings.directory, request.container, request.interface)):
        raise CniError(ALREADY_ATTACHED, f"{request.container} is attached by {request.interface} already")
    for network in networks:
        delegates.require_programs(network)
    annotation = pod_annotations.of(request.document).get(translation.REACH)
    reached = translation.forwards(annotation, translation.REACH)
    record: Record = {
        "container": request.container,
        "interface": request.interface,
        "pod": request.pod,
        "host": host_interfaces.listed(previous),
        "cluster": [str(one) for one in settings.cluster],
        "segments": [str(one) for one in settings.segments],
        "forward": [one.document for one in declared],
        "reach": [one.document for one in reached],
        "kept": _kept_at(request, settings),
        "netns": request.netns,
        "networks": networks,
        "forwarded": forwarding.on(request.netns),
    }
    try:
        records.write(settings.directory, record)
        forwarding.switch(request.netns, [])
        for network in networks:
            delegates.attach(network, request)
            records.write(settings.directory, record)
        _lead(request, settings, previous, networks, declared, reached)
        record["forwarding"] = forwarding.on(request.netns)
        records.write(settings.directory, record)
        # Whoever changed the list while it was read has seen no record.
        _renew(settings.directory, request.container, request.interface)
        _show(settings)
    except Exception as error:
        _undo(settings, record, request, error)
        raise


def _lead(
    request: Request,
    settings: Settings,
    previous: dict[str, Any],
    networks: list[Network],
    declared: list[Forward],
    reached: list[Forward],
) -> None:
    """Give the pod its routes, and what it forwards."""
    ways = [routes.Way(network["interface"], network["results"][-1]) for network in networks]
    devices = _to_devices(ways, declared)
    behind = [*devices]
    for to in (*routes.blocks(settings.segments), *(routes.block(one.address, 32) for one in reached)):
        way = routes.leading(ways, to)
        behind += [(way, to)] if way is not None else []
    far = [(way, block) for way, block in behind if not way.has(block)]
    gateway = routes.gateway(request.netns, request.interface, previous)
    routes.keep(request.netns, request.interface, gateway, routes.blocks(settings.cluster), far)
    if declared:
        _translate(request.netns, request.interface, {way.interface for way, _ in devices}, declared)


def renew(state: str) -> list[str]:
    """Let running pods forward what the lists that they name say by now; return what went wrong.

    Each pod's table changes in one transaction, and connections that are tracked go on.
    """
    errors: list[str] = []
    if not os.path.isdir(records_of(state)):
        return errors
    for directory in records.networks(records_of(state)):
        for container, interface in records.kept(directory):
            try:
                with AttachmentLock(directory, container, interface):
                    _renew(directory, container, interface)
            except (CniError, OSError, tools.CommandError) as error:
                errors.append(f"{container}: {in_words(error)}")
    with NodeLock(node_of(state)):
        _nft(gateways.table(records.of_node(records_of(state))))
    return errors


def _renew(directory: str, container: str, interface: str) -> None:
    record = records.read(records.path(directory, container, interface))
    path, netns = (record.get("kept"), record.get("netns")) if record else (None, None)
    if not record or not path or not os.path.exists(path) or not netns or not os.path.exists(netns):
        return
    declared = translation.kept(path)
    documents = [one.document for one in declared]
    if record["forward"] == documents:
        return
    ways = [routes.Way(one["interface"], one["results"][-1]) for one in record["networks"]]
    devices = _to_devices(ways, declared)
    routes.lead(netns, [(way, to) for way, to in devices if not way.has(to)])
    _translate(netns, interface, {way.interface for way, _ in devices}, declared)
    changed = {"forward": documents, "forwarding": forwarding.on(netns)}
    records.write(directory, {**record, **changed})  # last: until then it is to be done again


def _to_devices(ways: list[Way], declared: list[Forward]) -> list[tuple[Way, Block]]:
    return [(_leading(ways, one), routes.block(one.address, 32)) for one in declared]


def _translate(netns: str, interface: str, further: set[str], declared: list[Forward]) -> None:
    _nft(translation.table(interface, further, declared), netns)
    forwarding.let(netns, {interface, *further})  # after the table, which says what of it may


def _leading(ways: list[Way], declared: Forward) -> Way:
    way = routes.leading(ways, routes.block(declared.address, 32))
    if way is None:
        raise invalid(f"{declared.path}.address", "no further interface of the pod leads there")
    return way


def _show(settings: Identity) -> None:
    """Make the node's table what all records say."""
    with NodeLock(settings.node_directory):
        _nft(gateways.table(records.of_node(settings.records)))


def _nft(text: str, netns: str = "") -> None:
    tools.start("nft", "-f", "-", netns=netns).finish(text)


def _require_table(netns: str) -> None:
    try:
        tools.run("nft", "list", "table", *translation.TABLE.split(), netns=netns)
    except tools.CommandError as failure:
        raise CniError(CHECK_FAILED, str(failure)) from failure


def _undo(settings: Identity, record: Record, request: Request, cause: Exception) -> None:
    try:
        _detach(settings, record, request, request.netns)
    except Exception as error:
        raise CniError(COMMAND_FAILED, f"{cause}; undoing it failed: {error}") from cause


def _detach(settings: Identity, record: Record, request: Request, netns: str) -> None:
    """Take all networks away, the last one first, going on after an error. Raises CniError with all errors.

    The table that closes the pod goes last, and the record with it; what could not be taken away stays there.
    """
    errors: list[CniError] = []
    left: list[Network] = []
    for network in reversed(record["networks"]):
        try:
            delegates.detach(network, request, netns)
        except CniError as error:
            errors.append(error)
            left.insert(0, network)
    if left:
        records.write(settings.directory, {**record, "networks": left})
    else:
        if record["forward"] and netns:
            _nft(translation.REMOVED, netns)
        if netns and "forwarded" in record:
            forwarding.switch(netns, record["forwarded"])
        records.drop(records.path(settings.directory, record["container"], record["interface"]))
    _show(settings)
    if errors:
        details = "\n".join(error.msg for error in errors)
        raise CniError(errors[0].code, errors[0].msg, details if len(errors) > 1 else errors[0].details)


def _detach_unknown(settings: Identity, request: Request) -> None:
    """Take away what can be, where there is no record: most often because there is nothing left.

    What the annotation and the definitions still say is asked of the plugins; then the links that the
    previous result tells of are removed.
    """
    try:
        networks, _ = _asked(request, settings)
    except (CniError, OSError):
        networks = []
    for network in reversed(networks):
        try:  # noqa: SIM105 - importing contextlib costs a millisecond
            delegates.detach(network, request, request.netns)
        except CniError:
            pass
    if networks:
        _show(settings)
    if request.netns:
        for name in _told(request):
            _remove(request.netns, name)
    records.drop(records.path(settings.directory, request.container, request.interface))


def _told(request: Request) -> list[str]:
    """The pod's further interfaces, as the previous result has them."""
    entries = results.entries_of(request.document.get("prevResult"), "interfaces")
    found = [str(entry.get("name")) for entry in entries if entry.get("sandbox")]
    return [name for name in found if names.is_interface(name) and name not in (request.interface, "lo")]


def _remove(netns: str, name: str) -> None:
    """Delete a link of the pod. One that was moved there returns by itself when the namespace ends."""
    from edge import netlink as nl

    try:
        kernel = namespaces.opened(netns)
        try:
            nl.tell(nl.RTM_DELLINK, 0, nl.ifinfomsg(rtnetlink.index_of(name, kernel)), kernel)
        finally:
            kernel.close()
    except OSError:
        pass


def _end(network: Network, netns: str) -> dict[str, Any]:
    """The pod's end of a network, as the answer has it."""
    for entry in results.entries_of(network["results"][-1], "interfaces"):
        if entry.get("name") == network["interface"] and entry.get("sandbox"):
            return {key: entry[key] for key in ("name", "mac", "sandbox") if key in entry}
    return {"name": network["interface"], "sandbox": netns}
