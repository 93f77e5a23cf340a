"""The program: joins a node to its cluster's pod network when it has its block, and when others get theirs.

``/usr/bin/python3 -IS PATH/edge join PLAN.json``. The plan has what the node is to have, as templates of
batches; which blocks there are it learns from the cluster's Nodes, of which it changes nothing. What is there
follows from these two: devices, routes, neighbours and forwarding entries, then files, the last of which is
the CNI configuration, by which the node's kubelet becomes ready. Without a block a node has none of it.

What may be in the kernel stands in a journal before it is written there. So whatever the program was in the
midst of when it was killed, the next one removes what is not wanted and writes again all that is. A file is
there as a whole or not at all.
"""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, NamedTuple

from edge.addresses.arrivals import block, written_blocks
from edge.addresses.batches import Template, difference, filled, joined
from edge.http import Json, Server, UnfitError, json_object
from edge.log import Logger
from edge.signals import when_to_end
from edge.watch import Changed, Kind, Listed, News, follow

Blocks = Mapping[str, IPv4Network]
TOOLS = ("ip", "bridge")  # in the order in which they are run
RUN_SECONDS = 30.0
FIRST_RETRY, LAST_RETRY = 0.1, 5.0  # after what failed is tried again, at the least and at the most
IN_PLACE = "/proc/"  # below it files are values of the kernel's
_FAILED = re.compile(r"Command failed -:([0-9]+)")


def needed(node: Json) -> Json:
    """Return what is needed of a Node."""
    spec = node.get("spec") or {}
    kept = {key: spec[key] for key in ("podCIDR", "podCIDRs") if key in spec}
    return {"metadata": {"name": node["metadata"]["name"]}, "spec": kept}


NODES = Kind("/api/v1/nodes", needed)


class Plan(NamedTuple):
    """What the program is told; see ``parse``."""

    node: str  # the node's own name in the cluster
    api: str  # URL
    identity: str  # paths of PEM files: who asks, with the key, and who vouches for the API; or empty
    authority: str
    token: str  # the path of a file with a token to ask with; or empty
    batches: Mapping[str, Template]  # by tool
    files: Mapping[str, Template]  # by path, in the order in which they are written
    reloads: Sequence[tuple[str, Sequence[str]]]  # which command makes a daemon read its file again
    journal: str  # path


class Wanted(NamedTuple):
    """What a node should have."""

    batches: Mapping[str, str]
    files: Mapping[str, str]


def parse(text: str) -> Plan:
    """Return the plan that a text holds: an object with Plan's fields. Raises UnfitError."""
    said = json_object(text, "the content")
    for name in said.keys() - set(Plan._fields):
        raise UnfitError(f"{name[:40]}: no such field ({', '.join(Plan._fields)})")
    said = {"identity": "", "authority": "", "token": "", "reloads": [], **said}
    for name in Plan._fields:
        if name not in said:
            raise UnfitError(f"{name}: required")
        _CHECKS.get(name, _text)(name, said[name])
    reloads = [(path, argv) for path, argv in said.pop("reloads")]
    return Plan(**said, reloads=reloads)


def _text(field: str, value: object) -> None:
    if not isinstance(value, str):
        raise UnfitError(f"{field}: must be a string")


def _templates(field: str, value: object) -> None:
    if not isinstance(value, dict):
        raise UnfitError(f"{field}: must be an object of templates")
    for name, template in value.items():
        if not isinstance(template, list) or not all(_is_pair(one, str) for one in template):
            raise UnfitError(f"{field}.{name}: must be a list of [node, line]")


def _batches(field: str, value: object) -> None:
    _templates(field, value)
    for name in value if isinstance(value, dict) else ():
        if name not in TOOLS:
            raise UnfitError(f"{field}.{name}: no such tool ({', '.join(TOOLS)})")


def _reloads(field: str, value: object) -> None:
    if not isinstance(value, list) or not all(_is_pair(one, list) and _texts(one[1]) for one in value):
        raise UnfitError(f"{field}: must be a list of [path, [program, argument, ...]]")


def _is_pair(value: object, second: type) -> bool:
    if not isinstance(value, list) or len(value) != 2:
        return False
    return isinstance(value[0], str) and isinstance(value[1], second)


def _texts(value: Sequence[object]) -> bool:
    return bool(value) and all(isinstance(one, str) for one in value)


_CHECKS: Mapping[str, Callable[[str, object], None]] = {
    "batches": _batches,
    "files": _templates,
    "reloads": _reloads,
}


def wanted(plan: Plan, blocks: Blocks) -> Wanted:
    """Return what the node should have while nodes have these blocks: nothing while it has none itself."""
    if plan.node not in blocks:
        return Wanted(dict.fromkeys(plan.batches, ""), {})
    return Wanted(
        {tool: filled(template, blocks) for tool, template in plan.batches.items()},
        {path: filled(template, blocks) for path, template in plan.files.items()},
    )


def block_of(node: Json) -> IPv4Network | None:
    """Return the block of IPv4 that a Node has; None if there is none, or none that can be read."""
    for text in written_blocks(node):
        with suppress(ValueError):
            found = block(text)
            if isinstance(found, IPv4Network):
                return found
    return None


class Known:
    """The blocks of a cluster's nodes, as its API says them."""

    def __init__(self) -> None:
        self.blocks: dict[str, IPv4Network] = {}

    def take(self, news: News) -> None:
        """Take into account what was heard."""
        if isinstance(news, Listed):
            self.blocks = {}
        for node in news.objects if isinstance(news, Listed) else [news.document]:
            name, found = node["metadata"]["name"], block_of(node)
            if found is None or (isinstance(news, Changed) and news.gone):
                self.blocks.pop(name, None)
            else:
                self.blocks[name] = found


def batch(tool: str, text: str) -> list[str]:
    """Run lines, each whatever becomes of the others; return what failed, in the tool's words.

    What is there already, or is gone already, has not failed.
    """
    lines, failures = text.splitlines(), 0
    done = subprocess.run(
        [tool, "-force", "-batch", "-"],
        input=text, capture_output=True, text=True, check=False, timeout=RUN_SECONDS,
    )  # fmt: skip
    problems, said = [], ""
    for word in done.stderr.splitlines():
        if failed := _FAILED.match(word):
            failures += 1
            line = lines[int(failed[1]) - 1]
            verb = line.split()[1]
            if verb != "del" and not (verb == "add" and "File exists" in said):
                problems.append(f"{tool} {line}: {said}")
            said = ""
        else:
            said = word.strip()
    if done.returncode < 0 or (done.returncode and not failures):  # lines after that were not run
        problems.append(f"{tool} -batch: ended with status {done.returncode} {said}".strip())
    return problems


def command(argv: Sequence[str]) -> list[str]:
    """Run a command; return what it says if it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=RUN_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [str(error)]
    return [f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}"] if done.returncode else []


class Station:
    """One node: what it has is made what it should have."""

    def __init__(
        self,
        plan: Plan,
        run: Callable[[str, str], list[str]] = batch,
        reload: Callable[[Sequence[str]], list[str]] = command,
    ) -> None:
        self._plan, self._run, self._reload = plan, run, reload
        self._journal = self._read()
        self._sure = False  # whether all that the journal has is there, as it is written in it
        self._stale = {path for path, _ in plan.reloads}  # files whose daemons may have read former ones

    def settle(self, blocks: Blocks) -> list[str]:
        """Make the node have what follows from blocks; return what failed, and is to be tried again."""
        want = wanted(self._plan, blocks)
        removed = [] if want.files else list(_tried(remove, list(self._plan.files)[::-1]))
        return [*removed, *self._batches(want.batches), *self._files(want.files)]

    def _batches(self, want: Mapping[str, str]) -> list[str]:
        had = self._journal if self._sure else {
            tool: joined([line for line in self._journal[tool].splitlines() if line not in text.splitlines()])
            for tool, text in want.items()
        }  # fmt: skip
        changes = {tool: difference(had[tool], text) for tool, text in want.items()}
        if not any(changes.values()):
            return []
        self._write({tool: _union(self._journal[tool], text) for tool, text in want.items()})
        self._sure = False
        problems = [one for tool, text in changes.items() if text for one in self._run(tool, text)]
        if not problems:
            self._write(want)
            self._sure = True
        return problems

    def _files(self, files: Mapping[str, str]) -> list[str]:
        problems: list[str] = []
        for path, text in files.items():
            try:
                if write(Path(path), text):
                    self._stale.add(path)
            except OSError as error:
                return [*problems, f"{path}: {error}"]  # those after it are to be the later ones
        for path, argv in self._plan.reloads if files else ():
            if path in self._stale:
                failed = self._reload(argv)
                problems += failed
                if not failed:
                    self._stale.discard(path)
        return problems

    def _read(self) -> dict[str, str]:
        """Return what may be in the kernel. One that cannot be read is not there: it is written whole."""
        said: Any = {}
        with suppress(OSError, UnfitError):
            said = json_object(Path(self._plan.journal).read_bytes(), "the journal")
        return {tool: str(said.get(tool, "")) for tool in self._plan.batches}

    def _write(self, journal: Mapping[str, str]) -> None:
        write(Path(self._plan.journal), json.dumps(journal))
        self._journal = dict(journal)


def _union(one: str, other: str) -> str:
    return joined(list(dict.fromkeys([*one.splitlines(), *other.splitlines()])))


def _tried(change: Callable[[Path], None], paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        try:
            change(Path(path))
        except OSError as error:
            yield f"{path}: {error}"


def write(path: Path, text: str) -> bool:
    """Let a file hold a text, as a whole or not at all; tell whether it was another. Raises OSError.

    It is renamed within its directory: that is what containerd notices.
    """
    with suppress(OSError, ValueError):
        if path.read_text(encoding="utf-8") == text:
            return False
    if str(path).startswith(IN_PLACE):
        path.write_text(text, encoding="utf-8")
        return True
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink()  # half a file takes space from where there is none
        raise
    return True


def remove(path: Path) -> None:
    """Let a file not be there, unless it is a value of the kernel's. Raises OSError."""
    if not str(path).startswith(IN_PLACE):
        path.unlink(missing_ok=True)


def main(arguments: Sequence[str]) -> int:
    """Run until a signal ends it: 0, and all stays as it is; or return 2 for a plan that cannot be."""
    log = Logger(sys.stderr)
    if len(arguments) != 1:
        log("usage: join PLAN.json")
        return 2
    try:
        plan = parse(Path(arguments[0]).read_text(encoding="utf-8"))
        server = Server(plan.api, plan.identity, plan.authority, plan.token)
    except (OSError, ValueError) as error:
        log(f"{arguments[0]}: {error}")
        return 2
    inbox: queue.SimpleQueue[News | None] = queue.SimpleQueue()
    when_to_end(lambda: inbox.put(None))
    threading.Thread(target=follow, args=(server, NODES, inbox.put, log), daemon=True).start()
    keep(Station(plan), inbox, log)
    server.close()
    return 0


def keep(station: Station, inbox: queue.SimpleQueue[News | None], log: Logger) -> None:
    """Let a node follow what is heard, until that is None; what fails is tried again and again."""
    known, before, wait = Known(), None, None
    while True:
        try:
            news = inbox.get(timeout=wait)
            while news is not None:
                known.take(news)
                news = inbox.get_nowait()
            return
        except queue.Empty:
            pass
        if known.blocks == before and wait is None:
            continue
        try:
            problems = station.settle(known.blocks)
        except Exception as error:  # of any kind: who ended would leave the node as it is
            problems = [repr(error)]
        for text in problems:
            log.once(text)
        if known.blocks != before:
            log(f"blocks: {', '.join(f'{name} {block}' for name, block in known.blocks.items()) or 'none'}")
        before = dict(known.blocks)
        wait = min(LAST_RETRY, 2 * wait if wait else FIRST_RETRY) if problems else None
