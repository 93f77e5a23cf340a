"""The installer's script at work on directories that stand for a node's, and plugins for it to install."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.paths import ROOT

SCRIPT = ROOT / "plugin" / "deploy" / "install.sh"
NAME = "00-concorde.conflist"
# What a version that gives pods something else would have: another queue, and another rule's comment.
OTHERS = (
    ("node/htb.py", "_DEFAULT_QUEUE_MILLISECONDS = 2\n", "_DEFAULT_QUEUE_MILLISECONDS = 20\n"),
    ("node/marks.py", '"the node itself"', '"whatever the node sends"'),
)
# What a version had before its agent followed annotations.
FORMER_OPTIONS = (
    ("admin.py", '"--record", "--node", "--cache")', '"--record")'),
    ("admin.py", "[--record FILE] [--node NAME] [--cache DIR ...] <CONFLIST", "[--record FILE] <CONFLIST"),
)
# What a version with other tables would have: a step more.
STEPS = (
    ("state_files.py", "LEDGER_VERSION = 12", "LEDGER_VERSION = 13"),
    (
        "node/migration.py",
        "retire, *later)",
        'retire, *later, ("ALTER TABLE attachment ADD COLUMN later INTEGER",))',
    ),
)


class Installation:
    """A node's two directories, the container's files, and the script.

    `within` is how a command gets into the node, where that is not this machine.
    """

    def __init__(self, directory: Path, built: Path, within: Sequence[str] = ()) -> None:
        self.bin, self.networks = directory / "node/bin", directory / "node/net.d"
        self.plugin, self.configuration = directory / "plugin", directory / "configuration"
        self.within = within
        for made in (self.bin, self.networks, self.configuration):
            made.mkdir(parents=True)
        self.bring(built)
        self.loopback = self.executable(self.bin / "loopback")
        self.before = self.shown()
        self.state = directory / "state"
        self.key = directory / "key"  # of the cluster's Secret, if there is one
        self.write(subnet="10.0.0.0/24")

    def bring(self, built: Path) -> None:
        """Let the container's image have another version of the plugin."""
        shutil.rmtree(self.plugin, ignore_errors=True)
        shutil.copytree(built.parent, self.plugin)

    def write(self, **keys: object) -> None:
        """Put a network of this plugin alone into the ConfigMap."""
        plugin = {"type": "concorde", "stateDir": str(self.state / "plugin"), **keys}
        network = {"cniVersion": "1.0.0", "name": "net", "plugins": [plugin]}
        (self.configuration / "concorde.conflist").write_text(json.dumps(network))

    def write_behind(self) -> None:
        """Put into the ConfigMap that it stands behind the node's other network."""
        plugin = {"type": "concorde", "stateDir": str(self.state / "plugin"), "enforcement": "none"}
        (self.configuration / "concorde.conflist").write_text(json.dumps({"plugins": [plugin]}))
        (self.configuration / "chain").write_text("true")

    def executable(self, file: Path, text: str = "") -> Path:
        """Make a file that may be executed."""
        file.write_text(text)
        file.chmod(0o755)
        return file

    def run(self, task: str, **settings: str) -> tuple[int, str]:
        """One look of the script: its status and what it says."""
        command = [*self.within, "sh", str(SCRIPT), "once"]
        environment = self.environment(task, **settings)
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def environment(self, task: str, **settings: str) -> dict[str, str]:
        """What the script is told of its place."""
        return {
            "PATH": os.environ["PATH"],
            "ENTER": "env",
            "TASK": task,
            "LISTEN": "",  # this machine may have an agent
            "CNI_BIN_DIR": str(self.bin),
            "NODE": str(self.bin.parent),
            "PLUGIN": str(self.plugin),
            "CONFIGURATION": str(self.configuration),
            "STATE": str(self.state),
            "KEY": str(self.key),
            **settings,
        }

    @contextmanager
    def running(self, task: str, **settings: str) -> Iterator[Callable[[], str]]:
        """Let the script run as it does in its container; each call waits for a look, and tells its words.

        It sleeps between two looks until the next call.
        """
        directory = Path(tempfile.mkdtemp(dir=self.state.parent))
        sleeping, awake = directory / "sleeping", directory / "awake"
        for pipe in (sleeping, awake):
            os.mkfifo(pipe)
        self.executable(directory / "sleep", f"#!/bin/sh\necho >{sleeping}\nread -r line <{awake}\n")
        environment = self.environment(task, PATH=f"{directory}:{os.environ['PATH']}", **settings)
        with (
            (directory / "said").open("w") as written,
            (directory / "said").open() as said,
            sleeping.open("r+b", buffering=0) as sleeps,
            awake.open("r+b", buffering=0) as wake,
            subprocess.Popen(
                [*self.within, "sh", str(SCRIPT)],
                env=environment,
                stdout=written,
                stderr=written,
                start_new_session=True,
            ) as script,
        ):
            looks = 0

            def look() -> str:
                nonlocal looks
                if looks:
                    wake.write(b"\n")
                looks += 1
                sleeps.read(1)
                # What the agent says comes when it comes.
                return "".join(line for line in said if not line.startswith("agent: "))

            try:
                yield look
            finally:
                script.terminate()
                script.wait()
                # Who sleeps waits for somebody to wake it, and an agent that just begins knows no end yet.
                with suppress(ProcessLookupError):
                    os.killpg(script.pid, signal.SIGKILL)

    def version(self) -> str:
        """What the plugin that runtimes call says to be."""
        asked = [str(self.bin / "concorde"), "--version"]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()

    def shown(self) -> dict[str, tuple[int, bytes]]:
        """Everything on the node: modes and contents."""
        return {
            str(path): (path.stat().st_mode, path.read_bytes())
            for directory in (self.bin, self.networks)
            for path in directory.rglob("*")
            if path.is_file()
        }


def build(
    directory: Path,
    version: str,
    *,
    other_kernel: bool = False,
    other_tables: bool = False,
    former_options: bool = False,
) -> Path:
    """Build the plugin as another version of it; return its executable.

    It may make something else of the kernel for pods, have other tables, and know fewer options.
    """
    source = shutil.copytree(ROOT / "plugin", directory / "source", ignore=shutil.ignore_patterns("deploy"))
    shutil.copytree(ROOT / "edge", directory / "edge", dirs_exist_ok=True)  # of which its build takes a part
    said = source / "concorde" / "__init__.py"
    text, changed = re.subn(
        r'^VERSION = ".*"$', f'VERSION = "{version}"', said.read_text(), flags=re.MULTILINE
    )
    assert changed == 1
    said.write_text(text)
    others = ((OTHERS, other_kernel), (STEPS, other_tables), (FORMER_OPTIONS, former_options))
    for name, former, later in (one for changes, wanted in others if wanted for one in changes):
        file = source / "concorde" / name
        assert file.read_text().count(former) == 1
        file.write_text(file.read_text().replace(former, later))
    output = directory / "built"
    subprocess.run([sys.executable, source / "build.py", "--output", output], check=True)
    return output / "concorde"
