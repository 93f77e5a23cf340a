from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

Document = dict[str, Any]
Program = Callable[[bytes, dict[str, str]], tuple[int, Document | None]]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("cni")
    subprocess.run([sys.executable, ROOT / "plugin/build.py", "--output", output], check=True)
    return output / "concorde"


@pytest.fixture(scope="session")
def program(built: Path) -> Program:
    """Run the built plugin as a runtime does, and hold its answer to the protocol."""

    def run(content: bytes, environment: dict[str, str]) -> tuple[int, Document | None]:
        done = subprocess.run(
            [built], input=content, env={"PATH": os.environ["PATH"], **environment}, capture_output=True
        )
        assert done.stderr == b""
        if done.returncode == 0:
            return 0, json.loads(done.stdout) if done.stdout else None
        error = json.loads(done.stdout)
        assert done.returncode == 1
        assert isinstance(error["code"], int)
        assert isinstance(error["msg"], str)
        assert error["msg"]
        assert error["cniVersion"] in ("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
        return 1, error

    return run
