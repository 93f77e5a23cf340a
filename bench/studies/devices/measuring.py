"""What is measured on testbeds that are up, and is no recording: ways, what they hold, many clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.generators import exchanger_of
from bench.measurement.probe import talking
from bench.measurement.transfers import comes
from bench.studies import packets
from bench.studies.devices import ways
from bench.studies.devices.records import Clients, Exchanged, Flow, Handlers, Held, Round, Visit
from bench.studies.devices.ways import (
    ADDRESS,
    DEVICE,
    GATEWAY,
    PORTS,
    RELAY,
    STREAM,
    TOLD,
    TRANSLATE,
    Way,
)
from bench.studies.machine import look, since
from bench.studies.packets import End, Offer, Plan
from bench.studies.timed import lateness, lost, took
from testbed.access.place import Place, Process, waits
from testbed.links import segments
from testbed.runtime import proxies
from testbed.scenario import Requests, connections
from testbed.supplies import packages
from testbed.testbed import Testbed

PROGRAMS = Path(__file__).with_name("programs")
END_SECONDS = 20.0
ANSWER_SECONDS = 60.0
GONE_SECONDS = 45.0  # a kernel forgets a flow by UDP after 30 s, and a relay ends after as many
LOOK_SECONDS = 0.5
OFFER = Offer(1400, 20_000)
# Each of these chains would drop what is no proxy pod's.
CLOSED = (f"inet {segments.TABLE} proxies", f"ip {proxies.TYPE} forward")
PLAN = Plan(idle=1.0, lead=0.2, window=0.5, windows=4)


class Lengths(NamedTuple):
    """How long each is measured."""

    exchanges_s: float
    flow_s: int
    plan: Plan


class Sides(NamedTuple):
    """Where one way begins, and what is asked there."""

    source: Place
    address: str


def service(testbed: Testbed, connection: str) -> str:
    """Return the address of a connection in its cluster."""
    return str(testbed.addressing.service(connections.service_of(connection)))


def sides(testbed: Testbed, way: Way) -> Sides:
    """Return where a way begins, and the address that is asked there."""
    own = testbed.nodes[GATEWAY]
    source = own if way.source == GATEWAY else testbed.networks[way.source]
    if way.leads in (TRANSLATE, RELAY):
        return Sides(source, service(testbed, way.leads))
    return Sides(source, _host(testbed) if way.leads == ways.HOST else ADDRESS)


def _host(testbed: Testbed) -> str:
    """Return the gateway's own address."""
    return str(testbed.addressing.address(GATEWAY))


@contextmanager
def opened(testbed: Testbed) -> Iterator[None]:
    """Let the gateway route one pod into the segment, and relay in its own network, as two ways need it."""
    own, pod = testbed.nodes[GATEWAY], testbed.pods[ways.NEAR].address
    opening = (
        f"insert rule {chain} ip saddr {source} ip daddr {destination} accept\n"
        for chain in CLOSED
        for source, destination in ((pod, ADDRESS), (ADDRESS, pod))
    )
    own.run(["nft", "-f", "-"], stdin="".join(opening))
    gateway = testbed.scenario.segments[ways.SEGMENT].gateways[GATEWAY].ip
    testbed.provider.devices[DEVICE].place.run(["ip", "route", "add", pod, "via", str(gateway)])
    with TemporaryDirectory() as directory, _hosted(own, _host(testbed), Path(directory)):
        yield


@contextmanager
def _hosted(own: Place, address: str, directory: Path) -> Iterator[None]:
    program, started = str(packages.find("socat", "socat")), list[Process]()
    try:
        for port in PORTS.values():
            for kind in ("TCP4", "UDP4"):
                argv = [
                    program,
                    f"{kind}-LISTEN:{port},bind={address},reuseaddr,fork",
                    f"{kind}:{ADDRESS}:{port}",
                ]
                files = [directory / f"{kind}{port}.{end}" for end in ("out", "err")]
                started.append(own.start(argv, stdout=files[0], stderr=files[1]))
        for kind, process in zip(("t", "u") * len(PORTS), started, strict=True):
            asked = ["ss", f"-Hln{kind}"]
            listening = partial(_listening, own, asked, set(PORTS.values()))
            if not comes(process, listening):
                raise RuntimeError(f"{own.name}: socat does not listen")
        yield
    finally:
        for process in started:
            process.kill()


def _listening(place: Place, asked: Sequence[str], ports: set[int]) -> bool:
    shown = place.run(asked).stdout.splitlines()
    return ports <= {int(line.split()[3].rpartition(":")[2]) for line in shown}


def visit(testbed: Testbed, way: Way, lengths: Lengths) -> Visit:
    """Measure one way. Raises RuntimeError."""
    source, address = sides(testbed, way)
    device = testbed.provider.devices[DEVICE].place
    exchanges = [
        exchanged(testbed, one, source, address, lengths.exchanges_s) for one in testbed.scenario.requests
    ]
    stream, told = (End(device, ADDRESS, port, (address, port)) for port in (PORTS[STREAM], PORTS[TOLD]))
    before = look()
    brought = packets.throughput(source, stream, lengths.flow_s)
    beside = since(before, look())
    offered = packets.offer(source, told, OFFER, lengths.plan)
    flow = Flow(bytes=brought.bytes, seconds=brought.seconds, beside=beside)
    return Visit(way=way.name, exchanged=exchanges, flow=flow, offered=offered)


def visits(testbed: Testbed, order: Sequence[Way], lengths: Lengths, number: int) -> Round:
    """Measure ways, one after the other. Raises RuntimeError."""
    with opened(testbed):
        return Round(round=number, visits=[visit(testbed, way, lengths) for way in order])


def exchanged(testbed: Testbed, asked: Requests, source: Place, address: str, seconds: float) -> Exchanged:
    """Make exchanges with the device, by the generator ``requests``. Raises RuntimeError."""
    addressing = testbed.addressing
    one = asked.model_copy(update={"duration": seconds})
    tool, device = exchanger_of(addressing.scenario, one), testbed.provider.devices[DEVICE].place
    started = list[Process]()
    with TemporaryDirectory() as directory:
        answers, times, words, errors = (
            Path(directory, name) for name in ("answers", "times.csv.gz", "words", "errors")
        )
        try:
            server = device.start(tool.receiver(addressing, one), stdout=answers, stderr=words, held=True)
            started.append(server)
            if not comes(server, lambda: bool(device.run(tool.ready(addressing, one)).stdout)):
                raise RuntimeError(f"{DEVICE}: no server listens: {words.read_text(encoding='utf-8')}")
            argv = tool.sender(addressing, one, address)
            client = source.start(argv, stdout=times, stderr=errors, held=True)
            started.append(client)
            if not comes(client, partial(waits, errors)):
                raise RuntimeError(f"{source.name}: no client begins: {errors.read_text(encoding='utf-8')}")
            client.release()
            if client.wait(timeout=seconds + END_SECONDS) != 0:
                raise RuntimeError(
                    f"{source.name}: a client did not end: {errors.read_text(encoding='utf-8')}"
                )
            found = tool.read_exchanges(times, one.count)
        finally:
            for process in started:
                process.kill()
    late = lateness(found)
    return Exchanged(
        protocol=one.protocol,
        count=len(found),
        lost=lost(found),
        took=took(found),
        late_p99_s=late.p99_s,
        late_s=late.told_s,
    )


def held(testbed: Testbed, connection: str) -> Held:
    """Return what a connection's one proxy pod holds, and what its node keeps track of, too."""
    pod = testbed.networks[f"{connections.service_of(connection)}-1"]
    found, beside = (_held(place) for place in (pod, testbed.nodes[GATEWAY]))
    return found.model_copy(update={"tracked": found.tracked + beside.tracked})


def _held(place: Place) -> Held:
    with talking(place, PROGRAMS / "held.py", proxies.PROGRAM) as talk:
        talk.begin()
        return Held.model_validate(talk.data(END_SECONDS))


def at_rest(testbed: Testbed) -> list[Handlers]:
    """Return what connections of many handlers hold."""
    return [
        Handlers(way=mode, handlers=count, held=held(testbed, ways.connection(mode, count)))
        for mode in (TRANSLATE, RELAY)
        for count in ways.HANDLERS
    ]


def clients(testbed: Testbed, tell: Callable[[str], None]) -> list[Clients]:
    """Let many clients ask by each mode, and wait until nothing is left of them."""
    found = []
    for mode in (TRANSLATE, RELAY):
        tell(f"{ways.CLIENTS:,} clients by UDP, {mode}")
        before = held(testbed, mode)
        wishes = {
            "address": service(testbed, mode),
            "port": PORTS[TOLD],
            "clients": ways.CLIENTS,
            "seconds": ANSWER_SECONDS,
        }
        with talking(testbed.networks[ways.FAR], PROGRAMS / "clients.py", wishes) as talk:
            talk.begin()
            answered = talk.data(ANSWER_SECONDS + END_SECONDS)
        at_once, ended = held(testbed, mode), time.monotonic()
        while not _gone(before, after := held(testbed, mode)) and time.monotonic() < ended + GONE_SECONDS:
            time.sleep(LOOK_SECONDS)
        waited = round(time.monotonic() - ended, 2)
        gone = waited if _gone(before, after) else None
        found.append(
            Clients(
                way=mode,
                clients=ways.CLIENTS,
                answered=answered,
                before=before,
                at_once=at_once,
                after=after,
                gone_s=gone,
                waited_s=waited,
            )
        )
    return found


def _gone(before: Held, after: Held) -> bool:
    return (
        after.processes <= before.processes
        and after.sockets <= before.sockets
        and after.tracked <= before.tracked
    )
