"""Makes frames of rows (frame_kinds.py), run as a program: only it pays for scapy's import.

Takes a JSON object: `rows`, and the sender's `position`. Prints a JSON list: for each row
its frames in order (more than one if it is fragmented), each a virtio_net_hdr and a frame in hexadecimal. All
frames of a row carry its serial number, the row's place in the list.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from tests.paths import ROOT
from tests.system.plugin.covering import Row
from tests.system.plugin.frame_kinds import OVERLAY, Position, link_local, people
from tests.system.plugin.overhear import mark
from tests.system.plugin.overlapped import PORT, VTEP

TYPES = {
    "IPv4": 0x0800,
    "IPv6": 0x86DD,
    "ARP": 0x0806,
    "RARP": 0x8035,
    "MPLS": 0x8847,
    "PPPoE": 0x8864,
    "unknown": 0x88B5,
}
TAGS = {"802.1Q": 0x8100, "802.1ad": 0x88A8}
ARP_OPERATIONS = {"request": 1, "reply": 2, "gratuitous": 1, "gratuitous reply": 2, "inverse": 8}
RARP_OPERATIONS = {"request": 3, "reply": 4, "gratuitous": 3, "gratuitous reply": 4, "inverse": 9}
NEEDS_CHECKSUM = 1  # linux/virtio_net.h, as the next three
SEGMENTS_TCP4, SEGMENTS_TCP6, SEGMENTS_UDP = 1, 4, 5
SEGMENT = 1000  # bytes
SWITCHES = ("STP", "LACP", "LLDP")
AT_THE_LINK = ("own", "neighbour", "nobody", "broadcast", "multicast", *SWITCHES)


@dataclass(frozen=True)
class Frames:
    """A row with the frames it became; the serial is found in each of them."""

    serial: int
    row: Row
    frames: list[list[str]]


def build(rows: list[Row], position: Position) -> list[Frames]:
    """Make frames of rows, in a process of its own."""
    made = subprocess.run(
        [sys.executable, "-m", "tests.system.plugin.frames"],
        input=json.dumps({"rows": rows, "position": position}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=ROOT,
    )
    frames = json.loads(made.stdout)
    return [Frames(serial, *pair) for serial, pair in enumerate(zip(rows, frames, strict=True))]


class Maker:
    """Makes the frames of one row."""

    def __init__(self, row: Row, serial: int, position: Position) -> None:
        self.row, self.serial, self.who = row, serial, people(position)
        self.bridged = position == "bridged"
        self.text = mark(serial) * (220 if row.get("offload") == "segments" else 6)

    def frames(self) -> list[tuple[bytes, bytes]]:
        """Each with its virtio_net_hdr."""
        return [(self.offload(), self.ethernet() + load) for load in self.loads()]

    def ethernet(self) -> bytes:
        """Destination, source and tags."""
        row = self.row
        found = octets(self.next_hop()) + octets(self.source())
        tags = [("tag type", "tag id"), ("second type", "second id")][: int(row["tags"])]
        for kind, number in tags:
            found += struct.pack("!HH", TAGS[row[kind]], int(row[number]))
        return found + (struct.pack("!HH", TAGS["802.1Q"], 0) if row["tags"] == "3" else b"")

    def next_hop(self) -> str:
        destination = self.row["destination"]
        if self.row["kind"] == "IPv6" and destination == "multicast":
            return "33:33:00:00:00:01"
        at_link = destination in AT_THE_LINK and (self.bridged or destination != "neighbour")
        return self.who[destination if at_link else "gateway"][0]

    def source(self) -> str:
        name = self.row["source"]
        if name == "nobody":  # another one each time
            return "02:f0:" + struct.pack("!I", self.serial).hex(":")
        return "01:00:5e:00:00:01" if name == "multicast" else self.who[name][0]

    def loads(self) -> list[bytes]:
        """What follows the tags: a type, or a length, and what it says."""
        from scapy.contrib.mpls import MPLS
        from scapy.layers.l2 import LLC, SNAP, STP
        from scapy.layers.ppp import PPP, PPPoE

        kind = self.row["kind"]
        if kind == "LLC":
            load = bytes(LLC(dsap=0x42, ssap=0x42, ctrl=3) / STP()) + self.text
            return [struct.pack("!H", len(load)) + load]
        if kind == "SNAP":
            load = bytes(LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=0, code=0x0800)) + self.ipv4()[0]
            return [struct.pack("!H", len(load)) + load]
        header = struct.pack("!H", TYPES[kind])
        if kind == "MPLS":
            return [header + bytes(MPLS(label=16, s=1, ttl=64)) + self.ipv4()[0]]
        if kind == "PPPoE":
            session = PPPoE(sessionid=1) / PPP(proto=0x21)
            return [header + bytes(session / self.ipv4()[0])]
        if kind == "IPv4":
            return [header + packet for packet in self.ipv4()]
        if kind == "IPv6":
            return [header + packet for packet in self.ipv6()]
        return [header + (self.text if kind == "unknown" else self.arp())]

    def arp(self) -> bytes:
        from scapy.layers.l2 import ARP

        operation, address = self.row["operation"], self.who[self.row["address"]][1]
        operations = ARP_OPERATIONS if self.row["kind"] == "ARP" else RARP_OPERATIONS
        asked = address if operation.startswith("gratuitous") else self.who[self.row["destination"]][1]
        message = ARP(
            op=operations.get(operation, 1),
            hwsrc=self.who[self.row["sender"]][0],
            psrc=address,
            hwdst=self.next_hop(),
            pdst=asked,
            hwlen=6,
            plen=4,
        )
        found = bytearray(bytes(message))
        if operation == "of another length":
            found[4] = 8
        return bytes(found) + self.text

    def ipv4(self) -> list[bytes]:
        """An IPv4 packet, or its fragments."""
        from scapy.layers.inet import IP, IPOption_NOP

        source, target = self.who[self.row["address"]][1], self.who[self.row["destination"]][1]
        options = [IPOption_NOP()] * 4 if self.row.get("header") == "options" else []
        if self.row["carries"] == "PIM" and self.row["destination"] == "multicast":
            target = "224.0.0.13"  # all its routers
        header = IP(src=source, dst=target, id=self.serial & 0xFFFF, options=options)
        whole = header / self.carried()
        protocol, load = IP(bytes(whole)).proto, bytes(whole)[20 + len(options) :]
        return [
            bytes(IP(**{**header.fields, "proto": protocol, "flags": int(more), "frag": at // 8}) / part)
            for at, part, more in self.parts(load)
        ]

    def ipv6(self) -> list[bytes]:
        """An IPv6 packet, or its fragments."""
        from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, PadN

        limit = 64 if self.row.get("discovery", "none") == "none" else 255
        header = IPv6(src=self.ipv6_source(), dst=self.ipv6_target(), hlim=limit)
        whole = bytes(header / self.carried())
        following, load = whole[6], whole[40:]
        packets = []
        for at, part, more in self.parts(load):
            upper, inner = following, part
            if self.row["fragment"] != "whole" or self.row["fragment header"] == "yes":
                fragment = IPv6ExtHdrFragment(nh=upper, offset=at // 8, m=int(more), id=self.serial)
                upper, inner = 44, bytes(fragment) + inner
            if self.row["header"] == "options":
                hop = IPv6ExtHdrHopByHop(nh=upper, options=[PadN(optdata=bytes(4))])
                upper, inner = 0, bytes(hop) + inner
            packets.append(bytes(IPv6(src=header.src, dst=header.dst, hlim=limit, nh=upper) / inner))
        return packets

    def ipv6_source(self) -> str:
        name = self.row["address"]
        return {"unspecified": "::", "nobody": "2001:db8::c8"}.get(name) or link_local(self.who[name][0])

    def ipv6_target(self) -> str:
        destination = self.row["destination"]
        if destination in ("broadcast", "multicast", *SWITCHES):
            return "ff02::1"
        return link_local(self.who[destination][0])

    def parts(self, load: bytes) -> list[tuple[int, bytes, bool]]:
        """Offset and bytes of what is sent of an IP packet's load, and whether more follows."""
        kind = self.row.get("fragment", "whole")
        if kind == "whole":
            return [(0, load, False)]
        if kind == "overlapping":  # what comes first is harmless, and asks to be believed
            harmless = struct.pack("!HH", 9, 9) + load[4:32]
            return [(0, harmless, True), (0, load[:32], True), (32, load[32:], False)]
        head, tail = (0, load[:8], True), (8, load[8:], False)
        return {"tiny first": [head, tail], "later only": [tail], "late first": [tail, head]}[kind]

    def carried(self) -> Any:
        """What the IP packet carries, as scapy has it, which fills in lengths and checksums."""
        from scapy.contrib.pim import PIMv2Hdr
        from scapy.layers.igmp import IGMP
        from scapy.layers.inet import ICMP, TCP, UDP
        from scapy.layers.inet6 import ICMPv6EchoRequest
        from scapy.layers.l2 import GRE

        carries = self.row["carries"]
        if carries == "UDP":
            return UDP(sport=4000, dport=9) / self.text
        if carries == "TCP":
            return TCP(sport=4000, dport=9, flags="A") / self.text
        if carries == "IPIP":
            return self.inside()
        if carries == "GRE":
            return GRE() / self.inside()
        if carries == "IGMP":
            return IGMP() / (bytes(4) + self.text)  # as long as version 3 has it
        if carries == "PIM":
            return PIMv2Hdr(type=0) / self.text
        if carries in OVERLAY:
            return UDP(sport=4000, dport=int(self.row["port"])) / self.encapsulated()
        if self.row["kind"] != "IPv6":
            return ICMP(id=1) / self.text
        return ICMPv6EchoRequest(data=self.text) if self.row["discovery"] == "none" else self.discovery()

    def inside(self) -> Any:
        """The packet within a tunnel: from somebody else, to a pod of the node that takes it out."""
        from scapy.layers.inet import IP, UDP

        source, _, target = self.row["inside"].partition(" to ")
        far = self.row["destination"].startswith("remote")
        if source == "neighbour onward":
            source, target, far = "neighbour", "cluster a", not far
        third = 16 if target == "cluster a" else 17
        to = f"172.{third}.{2 if far else 1}.2"
        return IP(src=self.who[source][1], dst=to) / UDP(sport=4001, dport=9) / self.text

    def encapsulated(self) -> Any:
        from scapy.contrib.geneve import GENEVE
        from scapy.layers.l2 import Ether
        from scapy.layers.vxlan import VXLAN

        cluster = "b" if int(self.row["port"]) == PORT["b"] else "a"
        side = "two" if self.row["destination"].startswith("remote") else "one"
        other = "one" if side == "two" else "two"
        number = 2 if cluster == "b" else 1
        shell = VXLAN(vni=number, flags="Instance") if self.row["carries"] == "VXLAN" else GENEVE(vni=number)
        return shell / Ether(src=VTEP[cluster][other], dst=VTEP[cluster][side]) / self.inside()

    def discovery(self) -> Any:
        from scapy.layers import inet6

        kind, mac = self.row["discovery"], self.who["own"][0]
        seen = inet6.ICMPv6NDOptUnknown(type=253, data=mark(self.serial))  # RFC 4727: for experiments
        own, to = inet6.ICMPv6NDOptSrcLLAddr(lladdr=mac), inet6.ICMPv6NDOptDstLLAddr(lladdr=mac)
        if kind == "solicitation":
            detecting = self.row["address"] == "unspecified"
            target = link_local(mac if detecting else self.who["neighbour"][0])
            return inet6.ICMPv6ND_NS(tgt=target) / (seen if detecting else own / seen)
        if kind.startswith("advertisement"):
            target = link_local(self.who[kind.rpartition(" ")[2]][0])
            return inet6.ICMPv6ND_NA(tgt=target, R=0, S=0, O=1) / to / seen
        if kind == "router solicitation":
            return inet6.ICMPv6ND_RS() / own / seen
        if kind == "listener query":
            return inet6.ICMPv6MLQuery(mladdr="::") / self.text
        if kind == "router advertisement":
            prefix = inet6.ICMPv6NDOptPrefixInfo(prefix="2001:db8:1::", prefixlen=64)
            return inet6.ICMPv6ND_RA(routerlifetime=1800) / own / prefix / seen
        neighbour = link_local(self.who["neighbour"][0])
        return inet6.ICMPv6ND_Redirect(tgt=link_local(mac), dst=neighbour) / to / seen

    def offload(self) -> bytes:
        """The virtio_net_hdr: what the kernel is asked to do for the sender."""
        row, ends = self.row, {"UDP": (6, 8), "TCP": (16, 20)}
        if row.get("offload", "none") == "none":
            return bytes(10)
        at, length = ends.get(row["carries"], ends["UDP"])
        start = len(self.ethernet()) + 2 + (20 if row["kind"] == "IPv4" else 40)
        if row["header"] == "options":
            start += 4 if row["kind"] == "IPv4" else 8
        start += 8 if row.get("fragment header") == "yes" else 0
        kind, size = 0, 0
        if row["offload"] == "segments":
            tcp = SEGMENTS_TCP4 if row["kind"] == "IPv4" else SEGMENTS_TCP6
            kind, size = (tcp if row["carries"] == "TCP" else SEGMENTS_UDP), SEGMENT
        return struct.pack("=BBHHHH", NEEDS_CHECKSUM, kind, start + length, size, start, at)


def octets(mac: str) -> bytes:
    """A hardware address as it is in a frame."""
    return bytes.fromhex(mac.replace(":", ""))


def main() -> None:
    """Make frames of standard input's rows."""
    spec = json.load(sys.stdin)
    made = []
    for serial, row in enumerate(spec["rows"]):
        frames = Maker(row, serial, spec["position"]).frames()
        made.append([[header.hex(), frame.hex()] for header, frame in frames])
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main()
