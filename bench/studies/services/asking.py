"""Requests to a service of a testbed that is up: who asks, who answers, and what happens meanwhile.

Servers and clients are those of the generator ``requests``. Here each server can be stopped and started while
clients ask on, and each counts what it was asked by which zone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.generators import exchanger_of
from bench.generators.generator import Exchange
from bench.measurement.transfers import FIRST_LOOK_SECONDS, comes
from bench.observations import delays
from bench.recording.records import Delayed
from bench.studies.services import situations
from bench.studies.services.records import Asked, Changed, Run, Trunk
from bench.studies.services.situations import SERVICE, Situation, asker, led_to
from bench.studies.timed import lateness, lost, took
from testbed.access.place import Process, in_parallel, waits
from testbed.links.trunks import trunks
from testbed.links.underlay import SWITCH
from testbed.runtime.services import Told
from testbed.scenario import Requests
from testbed.testbed import Testbed

KNOWN_SECONDS = 15.0  # the kernel tells a proxy that its file is another; if not, it looks twice a second
END_SECONDS = 20.0  # beyond the last exchange: an answer may take as long as the generator has patience
LEAD_SECONDS = 0.05
# A pod that is to be restarted answers what is under way to it: several trips between zones.
GRACE_SECONDS = 0.1
SWITCHES_PER_S = 2


class _Served(NamedTuple):
    """A server under way."""

    zone: str  # which asks it
    process: Process
    output: Path
    errors: Path


class Asking:
    """Requests of one case in one mode."""

    def __init__(self, testbed: Testbed, situation: Situation, mode: str, seconds: float, at: Path) -> None:
        self._testbed, self._situation, self._seconds, self._at = testbed, situation, seconds, at
        self._addresses = {name: place.address for name, place in testbed.pods.items()}
        self._requests = dict(self._shared(testbed.scenario.requests))
        self._servers: dict[str, list[_Served]] = {}
        self._clients: dict[str, Process] = {}  # by zone
        self._ended: dict[tuple[str, str], int] = {}  # what servers that have ended saw, by zone and endpoint
        self._started = 0
        self.told = situation.told._replace(modes={SERVICE: mode})
        self.changes: list[Changed] = []
        self.out_s = 0.0
        self.zero = 0.0

    def _shared(self, all_of_them: Sequence[Requests]) -> Iterator[tuple[str, Requests]]:
        """Yield each zone's requests, as much as it asks for."""
        for zone, share in self._situation.shares.items():
            (one,) = (each for each in all_of_them if each.source == asker(zone))
            if share:
                changed = {"rate": one.rate * share, "duration": self._seconds}
                yield zone, one.model_copy(update=changed)

    @property
    def endpoints(self) -> Sequence[str]:
        """All pods of the service."""
        return self._testbed.scenario.services[SERVICE].pods

    def run(self) -> Run:
        """Ask, and return what came of it. Raises RuntimeError."""
        known = self.tell(self.told)
        used = self._used(self.told)
        try:
            self._make_ready()
            delays.begin(self._testbed.provider.trunks)
            before = self._counted()
            self.zero = time.monotonic() + LEAD_SECONDS
            self._release()
            self._meanwhile()
            for client in self._clients.values():
                if client.wait(timeout=self._seconds + END_SECONDS) != 0:
                    raise RuntimeError(f"a client of {SERVICE} did not come to its end")
            after = self._counted()
            delayed, silent = delays.ask(self._testbed.provider.trunks)
            if silent:
                raise RuntimeError("\n".join(fault.text for fault in silent))
            in_parallel(self.stop, self.endpoints)
        finally:
            servers = (one.process for each in self._servers.values() for one in each)
            for process in (*self._clients.values(), *servers):
                process.kill()
        return self._made(known, used, [_between(*each) for each in zip(before, after, strict=True)], delayed)

    def tell(self, told: Told) -> float:
        """Let something be known; return how many seconds it took until all nodes' kernels have it.

        Raises RuntimeError if they do not come to have it.
        """
        wanted = {
            (situations.CLUSTER, node): {self._addresses[pod] for pod in pods}
            for node, pods in self._led_to(told).items()
        }
        begun = time.monotonic()
        self._testbed.tell_services(told)
        while self._testbed.service_endpoints() != wanted:
            if time.monotonic() > begun + KNOWN_SECONDS:
                raise RuntimeError(f"nodes do not lead to {SERVICE}'s endpoints as hints say: {wanted}")
            time.sleep(FIRST_LOOK_SECONDS)
        return time.monotonic() - begun

    def change(self, what: str, told: Told) -> None:
        """Let something be known while requests are under way."""
        at = max(0.0, time.monotonic() - self.zero)
        self.changes.append(Changed(what=what, at_s=round(at, 4), known_s=round(self.tell(told), 4)))

    def serve(self, pod: str) -> None:
        """Start a pod's servers, one for each zone that asks, and wait until they listen."""
        place = self._testbed.networks[pod]
        addressing = self._testbed.addressing
        for zone, one in self._requests.items():
            self._started += 1
            output, errors = (self._at / f"{pod}.{zone}.{self._started}.{kind}" for kind in ("out", "err"))
            argv = exchanger_of(addressing.scenario, one).receiver(addressing, one)
            process = place.start(argv, stdout=output, stderr=errors, held=True)
            self._servers.setdefault(pod, []).append(_Served(zone, process, output, errors))
        for started in self._servers[pod]:
            _until_ready(started.process, started.errors, pod)

    def stop(self, pod: str) -> None:
        """End a pod's servers, and keep what they counted."""
        for one in self._servers.pop(pod, []):
            one.process.end_input()
            if one.process.wait(timeout=END_SECONDS) != 0:
                raise RuntimeError(f"a server of {pod} did not come to its end")
            seen = json.loads(one.output.read_text(encoding="utf-8"))["requests"]
            self._ended[one.zone, pod] = self._ended.get((one.zone, pod), 0) + seen

    def until(self, seconds: float) -> None:
        """Wait for a moment after the first request is due."""
        time.sleep(max(0.0, self.zero + seconds - time.monotonic()))

    @property
    def seconds(self) -> float:
        """For how long requests are due."""
        return self._seconds

    def _make_ready(self) -> None:
        """Start servers and clients side by side: a client asks nobody before it is released."""
        servers = [partial(self.serve, pod) for pod in self.endpoints]
        clients = [partial(self._client, zone) for zone in self._requests]
        in_parallel(lambda start: start(), [*servers, *clients])

    def _release(self) -> None:
        """Let clients begin, one after the other within one interval: they share the machine's processors."""
        for number, zone in enumerate(self._requests):
            self.until(number / situations.REQUESTS_PER_S)
            self._clients[zone].release()

    def _meanwhile(self) -> None:
        if self._situation.event is not None:
            _EVENTS[self._situation.event](self)

    def _client(self, zone: str) -> None:
        one, addressing = self._requests[zone], self._testbed.addressing
        tool = exchanger_of(addressing.scenario, one)
        argv = tool.sender(addressing, one, self._testbed.address_for(one))
        output, errors = self._file(zone), self._at / f"{zone}.err"
        process = self._testbed.networks[asker(zone)].start(argv, stdout=output, stderr=errors, held=True)
        self._clients[zone] = process
        _until_ready(process, errors, asker(zone))

    def _file(self, zone: str) -> Path:
        return self._at / f"{zone}.csv.gz"

    def _led_to(self, told: Told) -> dict[str, list[str]]:
        return led_to(self._testbed.addressing, self._addresses, told)

    def _used(self, told: Told) -> dict[str, list[str]]:
        nodes = self._testbed.scenario.nodes
        return {nodes[node].zone or "": pods for node, pods in self._led_to(told).items()}

    def _counted(self) -> list[Trunk]:
        """Return what has passed the trunks so far. Raises CommandError."""
        (hop,) = self._testbed.provider.hops
        shown = {one["ifname"]: one for one in hop.run(["ip", "-s", "-j", "link", "show"]).json()}
        return [
            Trunk(
                zone=one.zone,
                out_bytes=shown[one.near]["stats64"]["tx"]["bytes"],
                in_bytes=shown[one.far]["stats64"]["tx"]["bytes"],
            )
            for one in trunks(self._testbed.scenario, SWITCH)
        ]

    def _made(
        self,
        known: float,
        used: dict[str, list[str]],
        passed: list[Trunk],
        delayed: list[Delayed] | None,
    ) -> Run:
        told = {zone: self._told_of(zone) for zone in self._requests}
        found = situations.hinted(self._testbed.addressing, self._addresses, self.told)
        return Run(
            case=self._situation.name,
            mode=self.told.modes[SERVICE],
            seconds=self._seconds,
            known_s=round(known, 4),
            hinted=dict(sorted(found.hinted.items())),
            why_not=str(found.why_not) if found.why_not else None,
            used=used,
            asked=[self._asked(zone, exchanges) for zone, exchanges in told.items()],
            took=took([one for each in told.values() for one in each]),
            trunks=passed,
            delayed=delayed,
            changes=self.changes,
            out_s=round(self.out_s, 4),
        )

    def _told_of(self, zone: str) -> list[Exchange]:
        one = self._requests[zone]
        return exchanger_of(self._testbed.scenario, one).read_exchanges(self._file(zone), one.count)

    def _asked(self, zone: str, exchanges: Sequence[Exchange]) -> Asked:
        late = lateness(exchanges)
        return Asked(
            zone=zone,
            count=len(exchanges),
            lost=lost(exchanges),
            took=took(exchanges),
            late_p99_s=late.p99_s,
            late_s=late.told_s,
            answered={pod: self._ended.get((zone, pod), 0) for pod in self.endpoints},
        )


def _until_ready(process: Process, errors: Path, pod: str) -> None:
    """Wait until a server listens, or a client waits. Raises RuntimeError if it does not get there."""
    if not comes(process, partial(waits, errors), FIRST_LOOK_SECONDS):
        raise RuntimeError(f"{pod} does not get ready: {errors.read_text(encoding='utf-8')}")


def restart(asking: Asking) -> None:
    """Restart one pod after the other, each out for half of its part of the time: a rolling restart.

    A pod is no endpoint any more before it is stopped, and none yet before it listens again.
    """
    slot = asking.seconds / len(asking.endpoints)
    for number, pod in enumerate(asking.endpoints):
        asking.until(slot * (number + 0.1))
        begun = time.monotonic()
        asking.change(f"{pod} ends", asking.told._replace(unready=asking.told.unready | {pod}))
        time.sleep(GRACE_SECONDS)
        asking.stop(pod)
        asking.serve(pod)
        asking.until(slot * (number + 0.6))
        asking.change(f"{pod} is ready", asking.told)
        asking.out_s += time.monotonic() - begun


def switch(asking: Asking) -> None:
    """Switch hints off and on again, by turns."""
    for number in range(1, round(asking.seconds * SWITCHES_PER_S)):
        asking.until(number / SWITCHES_PER_S)
        on = number % 2 == 0
        told = asking.told if on else asking.told._replace(modes={})
        asking.change(f"hints {'on' if on else 'off'}", told)


_EVENTS: Mapping[str, Callable[[Asking], None]] = {"restart": restart, "switch": switch}


def _between(before: Trunk, after: Trunk) -> Trunk:
    return Trunk(
        zone=after.zone,
        out_bytes=after.out_bytes - before.out_bytes,
        in_bytes=after.in_bytes - before.in_bytes,
    )


def ask(testbed: Testbed, situation: Situation, mode: str, seconds: float) -> Run:
    """Ask for some seconds. Raises RuntimeError."""
    with TemporaryDirectory() as directory:
        return Asking(testbed, situation, mode, seconds, Path(directory)).run()
