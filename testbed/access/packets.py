"""Writes the packets of an interface to standard output, in pcap's format, for ``tcpdump -r -`` to show.

tcpdump itself cannot capture for an ordinary user in a user namespace: as root there it gives up its groups,
which the kernel forbids (user_namespaces(7), /proc/pid/setgroups). This program, run in the pod, does nothing
of the kind, and tcpdump runs outside. Packets the reader is too slow for are lost, as with tcpdump.

Run as a program, with the interface as its argument; the format is that of pcap-savefile(5).
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time

ETH_P_ALL = 3
SNAPSHOT_BYTES = 262_144  # tcpdump's default; a GSO packet has up to 64 KiB
LINKTYPE_ETHERNET = 1


def main() -> None:
    """Copy packets until standard output is closed."""
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    packets.bind((sys.argv[1], 0))
    os.write(1, struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAPSHOT_BYTES, LINKTYPE_ETHERNET))
    while True:
        packet = packets.recv(SNAPSHOT_BYTES)
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        header = struct.pack("=IIII", seconds, nanoseconds // 1000, len(packet), len(packet))
        try:
            os.write(1, header + packet)
        except BrokenPipeError:
            return


if __name__ == "__main__":
    main()
