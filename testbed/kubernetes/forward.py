"""Lets this machine's programs reach an API server in a sandbox: a port of the loopback interface.

It listens in the network it is started in, and connects from the network it is told: a socket belongs to the
network in which it was made, wherever its process goes afterwards. Started in the sandbox's process
namespace, it ends with the sandbox.

Run as a program with a network namespace's path, an address and a port there; prints its own port once it
listens, and stays. Standard library only.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

CLONE_NEWNET = 0x40000000  # linux/sched.h
LOOPBACK = "127.0.0.1"


def main() -> None:
    """Listen here, go there, and forward until killed."""
    namespace, address, port = sys.argv[1:]
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
