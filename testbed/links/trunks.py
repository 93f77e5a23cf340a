"""The trunk from a zone's switch to the core, where all trunks meet: what gives it its rate and its delay.

A trunk has two ends, ports of the two switches. Each has the queue of what leaves by it, with the trunk's
rate; what is between the ends differs. Without a delay it is a cable. With one it is a cable whose ends delay
packets themselves, by netem, where the kernel has that; else a relay (testbed.links.relay), which can
nothing but delay. Which it is, is found by trying, before anything is made.

Rendered as ``ip -batch`` and ``tc -batch`` text for the place where the switches are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol

from testbed.access.components import Component
from testbed.access.place import Feature, Node
from testbed.links import bucket, relay
from testbed.scenario import Scenario
from testbed.scenario.model import Zone

PYTHON = ("/usr/bin/python3", "-I", "-S")
RELAYS = "/run/testbed/relays"
READY_SECONDS = 60.0
# netem counts packets, of any size; so many at least, and as many small ones as the delay holds at the rate.
FEWEST_PACKETS, SMALL_PACKET = 10_000, 64  # bytes
FASTEST = 10**10  # bits per second, where no rate is stated
# Packets of up to 64 KiB that wait between a switch and the relay: 1 Gbit/s of small frames for 25 ms.
UNREAD_PACKETS = 2000


@dataclass(frozen=True)
class Trunk:
    """One zone's trunk. Its interfaces are called by its number, for a zone's name may be too long."""

    zone: str
    number: int
    settings: Zone
    mtu: int
    core: str  # the switch in the middle

    @property
    def switch(self) -> str:
        """The zone's switch."""
        return switch_name(self.number)

    @property
    def near(self) -> str:
        """The end at the zone's switch, which packets leave the zone by."""
        return near_end(self.number)

    @property
    def far(self) -> str:
        """The end at the core, which packets enter the zone by."""
        return far_end(self.number)


@dataclass(frozen=True)
class Counted:
    """What a delay did in one direction since it was asked last, as far as it knows."""

    frames: int
    late: int  # of these, later than a tenth of the delay, beside the delay
    worst_s: float
    dropped: int  # by what makes the delay, not by a queue that was full
    lateness: Sequence[int]  # frames by how late they were: below 1 us, below 2 us, below 4 us, ...


@dataclass(frozen=True)
class Delayed:
    """One direction of a trunk that takes time."""

    zone: str
    out: bool  # of the zone
    means: str  # what makes the delay
    delay_s: float
    counted: Counted | None  # None: it does not count


class Running(Protocol):
    """What makes a trunk, as it runs."""

    def fault(self) -> str | None:
        """Return in words why it does not run any more; None while it does."""

    def delayed(self) -> Sequence[Delayed]:
        """Return what was delayed since this was asked last. Raises RuntimeError if it does not say."""


class Cable:
    """What makes a trunk of what its settings ask for; as it is, a cable, which takes no time."""

    feature: Feature | None = None  # of the kernel, if it takes one that not every kernel here has

    def suits(self, settings: Zone) -> bool:
        """Tell whether it can do all that is asked for: only a rate, or nothing."""
        return not (settings.delay or settings.jitter or settings.loss or settings.reorder)

    def links(self, trunk: Trunk) -> list[str]:
        """Return the lines for ``ip`` that make both ends, which are not yet ports."""
        return [f"link add {trunk.near} mtu {trunk.mtu} type veth peer name {trunk.far} mtu {trunk.mtu}"]

    def queues(self, trunk: Trunk) -> list[str]:
        """Return the lines for ``tc`` that give both directions their rate, if there is one."""
        rate = trunk.settings.rate
        if rate is None:
            return []
        return [f"qdisc add dev {end} root {bucket(rate)}" for end in (trunk.near, trunk.far)]

    def start(self, trunk: Trunk, place: Node) -> Running:
        """Start what there is to run where the ends are. Raises RuntimeError."""
        return Kernel(trunk, None)


class Netem(Cable):
    """The kernel's own delay: first the packets take their time, then they wait for the rate."""

    feature = Feature(
        "netem (zones: delay, jitter, loss)",
        ("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"),
        "CONFIG_NET_SCH_NETEM",
        needed=False,
    )

    def suits(self, settings: Zone) -> bool:
        """It can do everything."""
        return True

    def queues(self, trunk: Trunk) -> list[str]:
        """Return for each end netem, and below it a token bucket if there is a rate."""
        rate = trunk.settings.rate
        lines = []
        for end in (trunk.near, trunk.far):
            lines.append(f"qdisc add dev {end} root handle 1: netem {_netem(trunk.settings)}")
            if rate is not None:
                lines.append(f"qdisc add dev {end} parent 1:1 handle 2: {bucket(rate)}")
        return lines

    def start(self, trunk: Trunk, place: Node) -> Running:
        """Nothing has to run."""
        return Kernel(trunk, "netem")


class Relay(Cable):
    """A program of ours that reads from one end and writes to the other, later."""

    feature = Feature(
        "TAP devices (zones: delay without netem)",
        ("ip", "tuntap", "add", "dev", "dtap", "mode", "tap", "vnet_hdr"),
        "CONFIG_TUN and /dev/net/tun",
        needed=False,
    )

    def suits(self, settings: Zone) -> bool:
        """Tell whether delay is all that is asked for, beside a rate."""
        return not (settings.jitter or settings.loss or settings.reorder)

    def links(self, trunk: Trunk) -> list[str]:
        """Return two TAP devices."""
        return [
            line
            for end in (trunk.near, trunk.far)
            for line in (
                f"tuntap add dev {end} mode tap vnet_hdr",
                f"link set {end} mtu {trunk.mtu} txqueuelen {UNREAD_PACKETS}",
            )
        ]

    def start(self, trunk: Trunk, place: Node) -> Running:
        """Start the relay, and wait until it answers."""
        running = Carrying(trunk, place)
        running.component.start()
        running.component.wait_until_it_answers(running.socket, READY_SECONDS)
        return running


@dataclass(frozen=True)
class Kernel:
    """A trunk that the kernel makes alone."""

    trunk: Trunk
    means: str | None  # of its delay

    def fault(self) -> None:
        """Nothing runs that could end."""

    def delayed(self) -> list[Delayed]:
        """Say only what there is: the kernel does not count how late it is."""
        if self.means is None:
            return []
        zone, delay = self.trunk.zone, self.trunk.settings.delay
        return [Delayed(zone, out, self.means, delay, None) for out in (True, False)]


@dataclass(frozen=True)
class Carrying:
    """A relay that runs."""

    trunk: Trunk
    place: Node

    @property
    def directory(self) -> str:
        """Where its log is."""
        return f"{RELAYS}/{self.trunk.near}"

    @property
    def socket(self) -> str:
        """Where it is asked."""
        return f"{self.directory}/socket"

    @property
    def component(self) -> Component:
        """The process."""
        trunk, settings = self.trunk, self.trunk.settings
        arguments = [
            self.socket,
            trunk.near,
            trunk.far,
            str(round(settings.delay * 1e9)),
            str(held(settings)),
        ]
        argv = [*PYTHON, str(relay.__file__), "serve", *arguments]
        return Component(f"relay of zone {trunk.zone}", self.place, self.directory, argv)

    def fault(self) -> str | None:
        """Return how it ended."""
        return self.component.fault()

    def delayed(self) -> list[Delayed]:
        """Ask it."""
        asked = self.place.run([*PYTHON, str(relay.__file__), "ask", self.socket])
        (counts,) = json.loads(asked.stdout)
        if isinstance(counts, str):
            raise RuntimeError(f"zone {self.trunk.zone}: {counts}")
        return [self._delayed(counts, "out", out=True), self._delayed(counts, "back", out=False)]

    def _delayed(self, counts: Mapping[str, Any], direction: str, out: bool) -> Delayed:
        counted = Counted(**counts[direction])
        return Delayed(self.trunk.zone, out, "relay", self.trunk.settings.delay, counted)


NETEM, RELAY = Netem(), Relay()
ALL: tuple[Cable, ...] = (Cable(), NETEM, RELAY)


def trunks(scenario: Scenario, core: str) -> list[Trunk]:
    """Return the trunk of each zone, in the order of the scenario."""
    mtu = scenario.underlay.mtu
    return [
        Trunk(name, number, zone, mtu, core) for number, (name, zone) in enumerate(scenario.zones.items())
    ]


def near_end(number: int) -> str:
    """Return the name of a trunk's end at its zone's switch."""
    return f"trunk{number}"


def far_end(number: int) -> str:
    """Return the name of a trunk's end at the core."""
    return f"{near_end(number)}-core"


def switch_name(number: int) -> str:
    """Return the name of a zone's switch."""
    return f"zone{number}"


def held(settings: Zone) -> int:
    """Return how many bytes one direction of a trunk may hold in the relay: what the delay holds, twice."""
    rate = FASTEST if settings.rate is None else settings.rate
    return 2**22 + 2 * ceil(rate / 8 * settings.delay)


def _netem(settings: Zone) -> str:
    rate = FASTEST if settings.rate is None else settings.rate
    longest = settings.delay + settings.jitter
    options = [f"limit {max(FEWEST_PACKETS, ceil(rate / 8 * longest / SMALL_PACKET))}"]
    if settings.delay:
        options.append(f"delay {_microseconds(settings.delay)}us")
    if settings.jitter:
        options.append(f"{_microseconds(settings.jitter)}us")
    if settings.reorder:
        options.append(f"reorder {_percent(settings.reorder)}%")
    if settings.loss:
        options.append(f"loss {_percent(settings.loss)}%")
    return " ".join(options)


def _microseconds(seconds: float) -> int:
    return max(1, round(seconds * 1e6))


def _percent(share: float) -> str:
    return f"{share * 100:.6f}".rstrip("0").rstrip(".")
