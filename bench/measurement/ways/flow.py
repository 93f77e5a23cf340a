"""The throughput of one flow of TCP between two pods, as fast as the way allows."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from testbed.access.pods import PodPlace

PORT = 5999
LISTENING_SECONDS = 10.0


def throughput(source: PodPlace, destination: PodPlace, seconds: int) -> float:
    """Return the payload that iperf3 brings to the receiver, bits per second. Raises RuntimeError."""
    with tempfile.TemporaryDirectory() as directory:
        out, err = Path(directory, "out"), Path(directory, "err")
        server = destination.start(["iperf3", "-s", "-1", "-J", "-p", str(PORT)], stdout=out, stderr=err)
        try:
            deadline = time.monotonic() + LISTENING_SECONDS
            while not destination.run(["ss", "-Hltn", f"sport = :{PORT}"]).stdout:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{destination.name}: iperf3 does not listen: {err.read_text()}")
                time.sleep(0.01)
            client = ["iperf3", "-c", destination.address, "-p", str(PORT), "-t", str(seconds)]
            source.run(client, timeout=seconds + 60)
            server.wait(10)
        finally:
            server.kill()
        end = json.loads(out.read_text())["end"]["sum_received"]
    return float(end["bytes"] * 8 / end["seconds"])
