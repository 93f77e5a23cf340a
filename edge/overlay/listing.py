"""The program that shows what an overlay's etcd holds: ``/usr/bin/python3 -IS PATH/edge store URL``.

etcd has keys and values as bytes, and its JSON gateway shows them in base64; here they are as written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from edge.overlay import etcd
from edge.overlay.http import Server
from edge.overlay.store import AwayError


def main(arguments: Sequence[str]) -> int:
    """Print each key, its value, and when it ends; return 2 for no URL, 1 for a store that is away."""
    if len(arguments) != 1:
        sys.stderr.write("say where the store is: store http://192.168.122.100:4001\n")
        return 2
    try:
        for line in lines(Server(arguments[0])):
            sys.stdout.write(line)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except AwayError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def lines(server: Server) -> Iterator[str]:
    """Yield what is shown of each key. Raises AwayError."""
    for key, value, seconds in etcd.everything(server):
        yield f"{key}\n    {value}\n"
        if seconds is not None:
            yield f"    ends in {seconds} s, unless it is renewed\n"
