"""Whether a node can be reached by who repairs it, while its link is full of what its pods send."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.measurement.transfers import READY_SECONDS
from bench.studies.promise.probes import streams
from bench.studies.promise.probes.programs import asking as program
from bench.studies.promise.records import Asked, Asking
from testbed.access import scratch
from testbed.access.place import Place, Process
from testbed.scenario import ports
from testbed.testbed import Testbed

PROGRAM = Path(program.__file__)
EVERY_S, TIMES, PATIENCE_S = 0.05, 60, 3.0
WARM_UP_S = 0.5


def measure(testbed: Testbed, node: str, other: str, *labels: str) -> Asked:
    """Ask a node by its first control port, and let it ask another, beside transfers. Raises RuntimeError.

    Nobody else may listen there, as on nodes that are namespaces.
    """
    with ExitStack() as stack:
        ways = ((other, node), (node, other))
        for place in {to for _, to in ways}:
            stack.enter_context(_running(testbed.nodes[place], {"port": _port(testbed, place)}))
        asking = [
            stack.enter_context(_running(testbed.nodes[place], _wishes(testbed, to))) for place, to in ways
        ]
        stack.enter_context(streams.sending(testbed, *labels))
        streams.wait_until(time.monotonic() + WARM_UP_S)
        for process, _ in asking:
            process.release()
        for process, _ in asking:
            process.wait(TIMES * EVERY_S + PATIENCE_S + READY_SECONDS)
        took = [json.loads(_said(out)[-1]) for _, out in asking]
    return Asked(
        waited_s=PATIENCE_S,
        askings=[
            Asking(port=_port(testbed, to), from_node=place, to_node=to, took_s=each)
            for (place, to), each in zip(ways, took, strict=True)
        ],
    )


def _port(testbed: Testbed, node: str) -> int:
    return ports.control(testbed.addressing, node)[0]


def _wishes(testbed: Testbed, to: str) -> dict[str, object]:
    address = str(testbed.addressing.address(to))
    timing = {"every": EVERY_S, "times": TIMES, "patience": PATIENCE_S}
    return {"port": _port(testbed, to), "address": address, **timing}


@contextmanager
def _running(place: Place, wishes: dict[str, object]) -> Iterator[tuple[Process, Path]]:
    """Have the program in its place until the end of the block; gives it, and where it says what it finds."""
    with scratch.file() as out, scratch.file() as errors:
        command = ["python3", "-IS", "-c", PROGRAM.read_text(encoding="utf-8"), json.dumps(wishes)]
        process = place.start(command, stdout=out, stderr=errors, held=True)
        try:
            streams.until(f"{place.name}: what asks or answers", process, errors, lambda: bool(_said(out)))
            yield process, out
        finally:
            process.kill()


def _said(out: Path) -> list[str]:
    return out.read_text(encoding="ascii").splitlines()
