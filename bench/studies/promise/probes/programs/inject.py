"""Puts frames on a pod's interface as they are, run as a program in a pod with CAP_NET_RAW.

Reads a JSON object from the file that its argument names, or from standard input's first line: `frames`, a
list of virtio_net_hdr and frame in hexadecimal; `held`: say `ready`, and wait for a line on standard input;
`for_ever`: say `flooding` and send them again and again until standard input ends, or for so many `seconds`,
as fast as it goes; and `priority`, the SO_PRIORITY it asks for. Prints the places in the list of those that
the kernel refused to send, and how many it took, as JSON.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

SOL_PACKET, PACKET_VNET_HDR = 263, 15  # linux/if_packet.h


def main() -> None:
    """Send."""
    if sys.argv[1:]:
        spec = json.loads(Path(sys.argv[1]).read_text(encoding="ascii"))
    else:
        spec = json.loads(sys.stdin.readline())
    frames = [bytes.fromhex(header + frame) for header, frame in spec["frames"]]
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    if "priority" in spec:
        with suppress(PermissionError):  # before Linux 5.17 that takes more than CAP_NET_RAW
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, struct.pack("=I", spec["priority"]))
    sender.bind(("eth0", 0))
    if spec.get("held"):
        print("ready", flush=True)
        sys.stdin.readline()
    if spec.get("for_ever"):
        flood(sender, frames, spec.get("seconds"))
    refused = []
    for at, frame in enumerate(frames):
        try:
            sender.send(frame)
        except OSError:
            refused.append(at)
    print(json.dumps({"refused": refused, "sent": len(frames) - len(refused)}))


def flood(sender: socket.socket, frames: list[bytes], seconds: float | None) -> None:
    """Send for so long, or until standard input ends. Does not return."""
    sent = 0

    def stop() -> None:
        if seconds is None:
            sys.stdin.read()
        else:
            time.sleep(seconds)
        print(json.dumps({"refused": [], "sent": sent}), flush=True)
        os._exit(0)

    threading.Thread(target=stop).start()
    print("flooding", flush=True)
    send = sender.send
    while True:
        for frame in frames:
            try:
                send(frame)
            except OSError:
                continue
            sent += 1


if __name__ == "__main__":
    main()
