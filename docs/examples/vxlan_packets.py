"""Shows the VXLAN packets that pass a node's interface while a command runs: what is outside, what inside.

    python3 docs/examples/vxlan_packets.py eth0 ping -c 1 10.1.2.2

For nodes: the standard library alone, and the right to look at packets. Source: RFC 7348, section 5.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys

VXLAN_PORT = 8472  # Linux's own, from before there was a number, which flannel has kept
ETHERNET, IPV4, UDP, VXLAN = 14, 20, 8, 8  # bytes of headers
ICMP = {0: "echo reply", 8: "echo request"}


def main() -> None:
    """Run the command, and then say what has passed meanwhile."""
    interface, *command = sys.argv[1:]
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
    packets.bind((interface, 0))
    packets.setblocking(False)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    try:
        while True:
            sys.stdout.writelines(shown(packets.recv(65536)))
    except BlockingIOError:
        return


def shown(frame: bytes) -> list[str]:
    """Return what is shown of a frame: nothing if it is not VXLAN in IPv4."""
    outer = frame[ETHERNET:]
    if frame[12:14] != b"\x08\x00" or outer[9] != socket.IPPROTO_UDP or port(outer) != VXLAN_PORT:
        return []
    vni = int.from_bytes(outer[IPV4 + UDP + 4 : IPV4 + UDP + 7], "big")
    inner = outer[IPV4 + UDP + VXLAN :]
    return [
        f"{way(outer)} UDP port {VXLAN_PORT}, VXLAN {vni}, {len(outer)} bytes\n",
        f"    {inner[6:12].hex(':')} > {inner[:6].hex(':')}\n",
        f"    {way(inner[ETHERNET:])} {what(inner[ETHERNET:])}, {len(inner) - ETHERNET} bytes\n",
    ]


def way(packet: bytes) -> str:
    """Return from where to where an IPv4 packet goes."""
    return f"{socket.inet_ntoa(packet[12:16])} > {socket.inet_ntoa(packet[16:20])}:"


def port(packet: bytes) -> int:
    """Return the port to which a UDP datagram goes."""
    return int(struct.unpack_from("!H", packet, IPV4 + 2)[0])


def what(packet: bytes) -> str:
    """Return what an IPv4 packet is."""
    if packet[9] == socket.IPPROTO_ICMP:
        return f"ICMP {ICMP.get(packet[IPV4], packet[IPV4])}"
    return f"protocol {packet[9]}"


if __name__ == "__main__":
    main()
