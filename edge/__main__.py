"""Starts a program of this package on a bare node: ``/usr/bin/python3 -IS PATH/edge PROGRAM ARGUMENTS``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from edge.addresses import controller, joining  # noqa: E402 (it is found only now)
from edge.devices import definitions, operator  # noqa: E402
from edge.overlay import etcd, resolver  # noqa: E402
from edge.services import proxy, publisher  # noqa: E402

PROGRAMS = {
    "resolver": resolver.main,
    "store": etcd.show,
    "leave": resolver.leave,
    "addresses": controller.main,
    "join": joining.main,
    "services-proxy": proxy.main,
    "hints": publisher.main,
    "devices": operator.main,
    "networks": definitions.main,
}


def main() -> int:
    """Run the program that the first argument names."""
    name, arguments = sys.argv[1:2], sys.argv[2:]
    if not name or name[0] not in PROGRAMS:
        sys.stderr.write(f"usage: edge PROGRAM ARGUMENTS; programs: {', '.join(PROGRAMS)}\n")
        return 2
    return PROGRAMS[name[0]](arguments)


if __name__ == "__main__":
    sys.exit(main())
