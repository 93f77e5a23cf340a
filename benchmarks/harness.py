"""What the harness adds to the traffic's own duration: one whole ``bench`` command a scenario, by the clock.

Imports, bring-up, calibration, checks, figures and report included. Needs an idle machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.scenario import load  # noqa: E402

GOAL = 4.0


def main() -> None:
    """Measure and print."""
    print("seconds beyond the traffic's own duration, whole command")
    for name in ("contmec", "kubernetes"):
        duration = load(ROOT / "scenarios" / f"{name}.yaml").duration
        with tempfile.TemporaryDirectory() as reports:
            begin = time.monotonic()
            done = subprocess.run(
                [ROOT / "invokew", "bench", "--scenario", name, "--retry", "0", "--reports", reports],
                capture_output=True,
                text=True,
                check=False,
            )
            seconds = time.monotonic() - begin
            file = Path(reports) / "latest" / "summary.json"
            if not file.exists():
                sys.exit(done.stdout + done.stderr)
            summary = json.loads(file.read_text())
        rest = seconds - sum(summary["seconds"].values())
        parts = ", ".join(f"{part} {took:.2f}" for part, took in summary["seconds"].items())
        parts += f", start and checks {rest:.2f}"
        print(f"{name:12} {seconds - duration:5.2f}  ({summary['verdict']}; {parts})")
    print(f"goal: at most {GOAL:g}")


if __name__ == "__main__":
    main()
