"""How first runs end on machines of three kinds, and how often the calibration foresaw it.

``./invokew bench`` beside a process that uses one processor, on an idle machine, and on processors held to a
third of their time by a quota of the cpu cgroup (as root). Right is *can tell* before a statement, and
*cannot* before a run that is invalid because of the machine; of what was asked for, not of what follows.

Takes a quarter of an hour, and more where runs are tried again. Needs an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
GROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
SHARE = 1 / 3
TIMES = {"hog": 10, "idle": 10, "third": 5}


def main() -> None:
    """Measure and print a line a run, then the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", default="contmec")
    for kind, times in TIMES.items():
        parser.add_argument(f"--{kind}", type=int, default=times, help=f"runs (default: {times})")
    parser.add_argument("--processes", type=int, default=1, help="that are the hog (default: 1)")
    asked = parser.parse_args()
    right, said, ended, total = 0, set(), 0, 0
    for kind in TIMES:
        for _ in range(getattr(asked, kind)):
            load = os.getloadavg()[0]
            begun = time.monotonic()
            with _circumstance(kind, asked.processes) as group, tempfile.TemporaryDirectory() as reports:
                done = subprocess.run(
                    [ROOT / "invokew", "bench", asked.scenario, "--json", "--reports", reports],
                    capture_output=True,
                    text=True,
                    check=False,
                    preexec_fn=partial(_enter, group),
                )
            if not done.stdout:
                sys.exit(done.stderr)
            runs = [run["summary"] for run in json.loads(done.stdout)["runs"]]
            if "foreseen" not in runs[0]["calibration"]:
                sys.exit("\n".join(runs[0]["reasons"]))
            foreseen = _foreseen(runs[0])
            correct = foreseen == (runs[0]["verdict"] != "invalid")
            clear = runs[-1]["verdict"] != "invalid" or "cannot tell at any" in done.stderr
            right, ended, total = right + correct, ended + clear, total + 1
            said.add(foreseen)
            print(
                f"{kind:5} load {load:5.2f}  {'can tell' if foreseen else 'cannot':8} "
                f"{runs[0]['verdict']:8} {'right' if correct else 'WRONG'}  margin {_margin(runs[0]):5.2f}  "
                f"{', '.join(_outcome(run) for run in runs)}  {time.monotonic() - begun:.0f} s"
                f"{'' if clear else '  NO END'}",
                flush=True,
            )
    answers = "both answers" if len(said) > 1 else "one answer"
    print(f"foreseen {right} of {total}, {answers}; {ended} end with a statement, or say that there is none")


def _enter(group: Path | None) -> None:
    if group is not None:
        (group / "cgroup.procs").write_text("0")


def _foreseen(summary: dict[str, Any]) -> bool:
    return bool(summary["calibration"]["foreseen"][0]["can_tell"])


def _margin(summary: dict[str, Any]) -> float:
    return float(summary["calibration"]["foreseen"][0]["margin"])


def _outcome(summary: dict[str, Any]) -> str:
    rate = max(flow["guarantee_bps"] or 0 for flow in summary["flows"])
    return f"{summary['verdict']} ({rate / 1e9:g}G)"


@contextmanager
def _circumstance(kind: str, processes: int) -> Iterator[Path | None]:
    """Make the machine what it shall be until the end of the block; yields the cgroup to run in, if any."""
    if kind == "third":
        group = _group()
        try:
            yield group
        finally:
            group.rmdir()
        return
    busy = [sys.executable, "-c", "while True: pass"]
    hogs = [subprocess.Popen(busy) for _ in range(processes if kind == "hog" else 0)]
    try:
        yield None
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def _group() -> Path:
    """Return a new cgroup with a third of all processors' time, below this process's own."""
    quota = round(SHARE * PERIOD_US * len(os.sched_getaffinity(0)))
    own = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in _own().splitlines()}
    controller = next((names for names in own if "cpu" in names.split(",")), None)
    if controller is not None:  # version 1
        group = GROUPS / "cpu" / own[controller].lstrip("/") / f"first-run-{os.getpid()}"
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(quota))
    else:
        group = GROUPS / f"first-run-{os.getpid()}"
        group.mkdir()
        (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
    return group


def _own() -> str:
    return Path("/proc/self/cgroup").read_text(encoding="ascii")


if __name__ == "__main__":
    main()
