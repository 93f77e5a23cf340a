"""Makes a scenario's clusters of machines, and machines of its clusters: by playbooks.

ansible-runner runs them: what happens is told as it happens, and what fails in a line each.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import ansible_mitogen  # type: ignore[import-untyped]
import ansible_runner  # type: ignore[import-untyped]

from testbed import resources
from testbed.access import scratch
from testbed.kubernetes import cell
from testbed.providers.ssh.inventory import Machine
from testbed.providers.ssh.provider import located
from testbed.provisioning import variables
from testbed.scenario import Scenario
from testbed.supplies import binaries, bundle, cache, getting, packages, versions
from testbed.supplies.bundle import Bundle


def provision(
    scenario: Scenario, machines: Mapping[str, Machine], directory: Path | None, version: str, say: Say
) -> Outcome:
    """Turn the machines of a scenario's nodes into its clusters; what is so already stays as it is.

    ``directory`` is a bundle; without one it is made of the programs that are kept, or else downloaded.
    Raises LookupError and ScenarioError for what cannot be, RuntimeError for what failed.
    """
    offered = bundle.read(directory) if directory is not None else assembled(version, say)
    if directory is not None and version and str(offered.version) != version:
        raise LookupError(f"--version: {version}, but {directory} has Kubernetes {offered.version}")
    if scenario.services and not offered.for_names:
        say(f"services get no names in pods: no dnsmasq is in the bundle: {packages.GET}, and bundle again")
    say("looking for the machines' addresses between the nodes")
    placed = located(scenario, machines)
    with scratch.directory() as packed:
        hosts = variables.inventory(placed, machines, offered)
        hosts["all"]["vars"] |= {
            "plugin_archive": str(pack_plugin(packed)),
            "cell_program": str(cell.__file__),
        }
        return run(SITE, hosts, say)


def reset(machines: Mapping[str, Machine], say: Say) -> Outcome:
    """Take away from machines what provisioning has made there."""
    return run(RESET, variables.bare_inventory(machines), say)


def assembled(version: str, say: Say) -> Bundle:
    """Return a bundle of a version's programs: those that are kept, or else the official release."""
    wanted = str(versions.parse(version or versions.CURRENT))
    try:
        programs = binaries.find(wanted)
    except (LookupError, RuntimeError):
        programs = getting.get(wanted, getting.download, say=say)
    say(f"putting together what machines need of Kubernetes {programs.version}")
    return bundle.make(programs, cache.root() / f"bundle-{programs.version}")


def pack_plugin(scratch: Path) -> Path:
    """Return an archive of the plugin; the same sources make the same archive."""
    built = resources.build_plugin()
    archive = scratch / "concorde.tar"
    subprocess.run(
        [
            "/usr/bin/python3",
            "-I",
            str(resources.PLUGIN / "build.py"),
            f"--output={built}",
            f"--tar={archive}",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return archive


DIRECTORY = resources.PLAYBOOKS
SITE, RESET = DIRECTORY / "site.yml", DIRECTORY / "reset.yml"
# One Python on each host that stays, instead of one for each step: on an emulated machine a step then takes a
# second and not twenty.
STRATEGY = {
    "ANSIBLE_STRATEGY_PLUGINS": str(Path(ansible_mitogen.__file__).parent / "plugins" / "strategy"),
    "ANSIBLE_STRATEGY": "mitogen_linear",
}
AGAIN = "what was done is done: the same command goes on where this one stopped"
MARK = "ANSIBLE_LOCAL_TEMP"  # all that Ansible starts has it in its environment
LAST_WORDS = 400  # characters of what a failed command said

Say = Callable[[str], None]
Event = Mapping[str, Any]


class PlaybookError(RuntimeError):
    """A playbook came to no good end; the message has a line for each host: where, in which task, and why."""


@dataclass
class Outcome:
    """What has become of the hosts."""

    changed: dict[str, int] = field(default_factory=dict)  # how many tasks changed something, by host
    failures: list[str] = field(default_factory=list)

    def take(self, event: Event, say: Say) -> None:
        """Take note of one of ansible-runner's events."""
        data = event.get("event_data", {})
        match event["event"]:
            case "playbook_on_task_start":
                say(_title(data))
            case "runner_on_failed" if not data.get("ignore_errors"):
                self.failures.append(failure(data))
            case "runner_on_unreachable":
                self.failures.append(failure(data))
            case "playbook_on_stats":
                hosts = {**data.get("ok", {}), **data.get("processed", {})}
                self.changed = {host: data.get("changed", {}).get(host, 0) for host in sorted(hosts)}


def run(playbook: Path, inventory: Mapping[str, Any], say: Say) -> Outcome:
    """Run a playbook on all hosts of an inventory, and return what it has changed.

    Raises PlaybookError, or KeyboardInterrupt after Ctrl-C, once Ansible has ended.
    """
    outcome = Outcome()

    def take(event: Event) -> bool:
        outcome.take(event, say)
        return False  # not to be kept in a file

    with scratch.directory() as private, _signals_restored(), _ended(str(private)):
        done = ansible_runner.run(
            private_data_dir=str(private),
            playbook=str(playbook),
            inventory=dict(inventory),
            envvars=_environment(private),
            event_handler=take,
            quiet=True,
        )
        said = _read(done.stdout)
    if done.status == "canceled":
        say(f"interrupted; {AGAIN}")
        raise KeyboardInterrupt
    if outcome.failures:
        raise PlaybookError("\n".join([*outcome.failures, AGAIN]))
    if done.status != "successful":
        raise PlaybookError(f"ansible-playbook {playbook.name}: {done.status}: {_last(said)}")
    return outcome


def _environment(private: Path) -> dict[str, str]:
    """Return what Ansible has in its environment besides ours, given its own directory."""
    return {
        "ANSIBLE_CONFIG": str(DIRECTORY / "ansible.cfg"),
        "ANSIBLE_ROLES_PATH": str(DIRECTORY / "roles"),
        **STRATEGY,
        MARK: f"{private}/tmp",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }


def failure(data: Event) -> str:
    """Return host, task and reason of a failure, on one line."""
    return f"{data.get('host', '?')}: {_title(data)}: {reason(data.get('res') or {})}"


def reason(result: Mapping[str, Any]) -> str:
    """Return why a task failed: what its command said, or else Ansible's message."""
    failed = [one for one in result.get("results", ()) if one.get("failed") or one.get("unreachable")]
    if failed:
        first = failed[0]
        which = first.get("_ansible_item_label", first.get("item"))
        return f"{which}: {reason(first)}" if isinstance(which, str) else reason(first)
    said = str(result.get("stderr") or result.get("stdout") or "").strip()
    message = str(result.get("msg") or "").strip()
    if result.get("censored"):
        return "it failed, and its output holds a secret"
    if said and result.get("rc") is not None:
        return f"ended with {result['rc']}: {_last(said)}"
    return _last(message) or _last(said) or "no message"


def _read(stream: IO[str]) -> str:
    with stream:
        return stream.read()


def _title(data: Event) -> str:
    """Return a task's name, with its role's."""
    task, role = str(data.get("name") or data.get("task") or "?"), data.get("role")
    return f"{role}: {task.removeprefix(f'{role} : ')}" if role else task


def _last(text: str) -> str:
    """Return the end of what something said, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= LAST_WORDS else "..." + flat[-LAST_WORDS:]


@contextmanager
def _ended(scratch: str) -> Iterator[None]:
    """End what Ansible has left running: its workers have sessions of their own, and outlive an interrupt."""
    try:
        yield
    finally:
        mark = f"{MARK}={scratch}/tmp".encode()
        while left := list(_marked(mark)):
            for process in left:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)


def _marked(mark: bytes) -> Iterator[int]:
    """Yield the processes that have a setting in their environment."""
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (directory / "environ").read_bytes().split(b"\0"):
                yield int(directory.name)


@contextmanager
def _signals_restored() -> Iterator[None]:
    """Give signals back to whoever had them: ansible-runner takes them to end Ansible, and keeps them."""
    taken = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in taken.items():
            signal.signal(number, handler)
