"""Puts frames on a pod's interface as they are, run as a program in a pod with CAP_NET_RAW.

Reads a JSON object from standard input's first line: `frames`, a list of virtio_net_hdr and frame in
hexadecimal, and `for_ever`: say `flooding` and send them again and again until standard input ends, as fast
as it goes. Prints the places in the list of those that the kernel refused to send, and how many it took, as
JSON.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading

SOL_PACKET, PACKET_VNET_HDR = 263, 15  # linux/if_packet.h


def main() -> None:
    """Send."""
    spec = json.loads(sys.stdin.readline())
    frames = [bytes.fromhex(header + frame) for header, frame in spec["frames"]]
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sender.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    sender.bind(("eth0", 0))
    if spec.get("for_ever"):
        flood(sender, frames)
    refused = []
    for at, frame in enumerate(frames):
        try:
            sender.send(frame)
        except OSError:
            refused.append(at)
    print(json.dumps({"refused": refused, "sent": len(frames) - len(refused)}))  # noqa: T201


def flood(sender: socket.socket, frames: list[bytes]) -> None:
    """Send until standard input ends. Does not return."""
    sent = 0

    def stop() -> None:
        sys.stdin.read()
        print(json.dumps({"refused": [], "sent": sent}), flush=True)  # noqa: T201
        os._exit(0)

    threading.Thread(target=stop).start()
    print("flooding", flush=True)  # noqa: T201
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
