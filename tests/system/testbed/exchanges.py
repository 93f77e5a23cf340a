"""What is sent to devices and others in their networks; standard library only.

exchanges.py ask ADDRESS TCP UDP HTTP     prints what came back from these ports, as JSON
exchanges.py knock ADDRESS:PORT...        sends a datagram and a SYN to each, and waits for nothing
exchanges.py refused ADDRESS:PORT...      prints which of them refuse a connection, as JSON
"""

from __future__ import annotations

import json
import socket
import sys
import urllib.request
from contextlib import suppress

PATIENCE = 30.0  # seconds, for what surely comes


def by_tcp(address: str, port: int, text: bytes) -> bytes:
    with socket.create_connection((address, port), PATIENCE) as asking:
        asking.sendall(text)
        asking.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: asking.recv(65536), b""))


def by_udp(address: str, port: int, text: bytes) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(PATIENCE)
        asking.sendto(text, (address, port))
        return asking.recv(65536)


def by_http(address: str, port: int, body: bytes | None = None) -> bytes:
    url = f"http://{address}:{port}/state"
    with urllib.request.urlopen(url, body, PATIENCE) as answer:
        return bytes(answer.read())


def knock(address: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram, suppress(OSError):  # no route
        datagram.sendto(b"let me in", (address, port))
    with socket.socket() as stream, suppress(OSError):
        stream.setblocking(False)
        stream.connect((address, port))


def refuses(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), PATIENCE).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        pass
    return False


def main() -> None:
    what, *rest = sys.argv[1:]
    if what == "refused":
        ends = {target: target.partition(":") for target in rest}
        found = [target for target, (address, _, port) in ends.items() if refuses(address, int(port))]
        json.dump(found, sys.stdout)
        return
    if what == "knock":
        for target in rest:
            address, _, port = target.partition(":")
            knock(address, int(port))
        return
    address, tcp, udp, http = rest
    text = b"a picture" * 10_000
    came = {
        "tcp": by_tcp(address, int(tcp), text) == text,
        "udp": by_udp(address, int(udp), b"a frame") == b"a frame",
        "page": by_http(address, int(http)).decode(),
        "body": by_http(address, int(http), b"set").decode(),
    }
    json.dump(came, sys.stdout)


if __name__ == "__main__":
    main()
