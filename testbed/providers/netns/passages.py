"""What leads out of a sandbox: an interface's packets, and a port of this machine to an API server in it.

``packets`` writes an interface's packets to standard output, in pcap's format (pcap-savefile(5)), for
``tcpdump -r -`` to show. tcpdump itself cannot capture for an ordinary user in a user namespace: as root
there it gives up its groups, which the kernel forbids (user_namespaces(7), /proc/pid/setgroups). This
program, run in the pod, does nothing of the kind, and tcpdump runs outside. Packets that the reader is too
slow for are lost, as with tcpdump.

``port`` listens in the network it is started in, at the loopback interface, and connects from the network it
is told: a socket belongs to the network in which it was made, wherever its process goes afterwards. Started
in the sandbox's process namespace, it ends with the sandbox.

Run as a program, with the standard library alone:

    passages.py packets INTERFACE              copies packets until standard output is closed
    passages.py port NAMESPACE ADDRESS PORT    prints its own port once it listens, and stays
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

ETH_P_ALL = 3
SNAPSHOT_BYTES = 262_144  # tcpdump's default; a GSO packet has up to 64 KiB
LINKTYPE_ETHERNET = 1
CLONE_NEWNET = 0x40000000  # linux/sched.h
LOOPBACK = "127.0.0.1"


def main() -> None:
    """Do as the first argument says."""
    what, *arguments = sys.argv[1:]
    if what == "packets":
        copy_packets(*arguments)
    else:
        forward_port(*arguments)


def copy_packets(interface: str) -> None:
    """Copy packets until standard output is closed."""
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    packets.bind((interface, 0))
    os.write(1, struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, SNAPSHOT_BYTES, LINKTYPE_ETHERNET))
    while True:
        packet = packets.recv(SNAPSHOT_BYTES)
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        header = struct.pack("=IIII", seconds, nanoseconds // 1000, len(packet), len(packet))
        try:
            os.write(1, header + packet)
        except BrokenPipeError:
            return


def forward_port(namespace: str, address: str, port: str) -> None:
    """Listen here, go there, and forward until killed."""
    listening = socket.create_server((LOOPBACK, 0))
    with Path(namespace).open(encoding="utf-8") as there:
        if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), CLONE_NEWNET) != 0:
            sys.exit(os.strerror(ctypes.get_errno()))
    if os.fork():
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        return
    os.setsid()
    nowhere = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    asyncio.run(_serve(listening, address, int(port)))


async def _serve(listening: socket.socket, address: str, port: int) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(address, port)
        except OSError:  # the client sees its connection closed
            writer.close()
            return
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    async with await asyncio.start_server(forward, sock=listening) as server:
        await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes until it ends, then that it has ended."""
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    main()
