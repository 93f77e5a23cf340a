"""Datagrams that are counted: ``send ADDRESS`` until its input ends, ``receive`` until that is told."""

import select
import socket
import sys

PORT = 5300
END = b"end "

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    if sys.argv[1] == "receive":
        link.bind(("", PORT))
        received = 0
        while not (content := link.recv(100)).startswith(END):
            link.settimeout(10)
            received += 1
    else:
        to = (sys.argv[2], PORT)
        sent = 0
        while not select.select([sys.stdin], [], [], 0.002)[0]:
            link.sendto(b"%d" % sent, to)
            sent += 1
            if sent == 10:  # the neighbours are known by now
                pass
        for _ in range(3):
            link.sendto(END, to)
