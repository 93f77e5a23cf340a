"""What the network that this runs in holds: relays with their memory, sockets, flows that are tracked.

Run as a program by its path, with the relays' name as JSON in its argument. It says "ready", and, when a line
comes on its standard input, the rest as JSON. Only processes of the same network and of that name count: what
watches over them is the testbed's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

# Who reads it takes out what has expired (nf_conntrack_standalone.c, ct_seq_show), which is counted before.
TRACKED = Path("/proc/net/nf_conntrack")
SOCKETS = ("tcp", "udp", "raw")


def main() -> None:
    """Say it."""
    print("ready", flush=True)
    sys.stdin.readline()
    name = json.loads(sys.argv[1])
    own, processes, size = Path("/proc/self/ns/net").readlink(), 0, 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            if (entry / "comm").read_text().strip() == name and (entry / "ns" / "net").readlink() == own:
                size += _proportional(entry)
                processes += 1
        except OSError:  # it has ended
            continue
    sockets = sum(len(Path(f"/proc/net/{kind}").read_text().splitlines()) - 1 for kind in SOCKETS)
    tracked = len(TRACKED.read_text().splitlines()) if TRACKED.exists() else 0
    print(json.dumps({"processes": processes, "bytes": size, "sockets": sockets, "tracked": tracked}))


def _proportional(process: Path) -> int:
    """Return a process's proportional set size, in bytes (proc(5), smaps_rollup)."""
    for line in (process / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    main()
