"""This machine as a place, with the environment of whoever called: kubeconfigs lead to credential helpers."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from os import environ
from pathlib import Path

from testbed.kubernetes.client import SIGN_OF_LIFE
from testbed.nodes import RUN_SECONDS, Process, Result
from testbed.providers.netns.sandbox import LocalProcess, run_to_end

# What Go's client says (net/http, transport.go) of a server that takes connections and after ten seconds has
# not had the time to shake hands: an API on a slow machine, for as long as nodes or pods come up.
TOO_BUSY = "net/http: TLS handshake timeout"
ATTEMPTS = 12
SETTINGS = {SIGN_OF_LIFE: f"{RUN_SECONDS:g}"}


class Here:
    """Where kubectl runs; satisfies testbed.nodes.Place."""

    name = "this machine"

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = RUN_SECONDS,
    ) -> Result:
        """Run a command to its end; see testbed.nodes.Place.

        It is run again if the server it asks was too busy to hear what it wants: nothing has happened then.
        """
        for _ in range(ATTEMPTS):
            done = run_to_end(self.name, argv, argv, {**surroundings(), **(env or {})}, stdin, timeout)
            if done.status == 0 or TOO_BUSY not in done.stderr:
                break
        return done.checked(self.name, argv) if check else done

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        """Start a command that ends with its standard input, as kubectl exec does; see testbed.nodes.Place.

        The kernel could see to that (``setpriv --pdeathsig``), but at the end of the thread that started it.
        """
        with stdout.open("wb") as out, stderr.open("wb") as err:
            return LocalProcess(
                subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE if held else subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    env=surroundings(),
                )
            )

    def attach(self, argv: Sequence[str], *, stdout: Path, stderr: Path) -> Process:
        """Start a client; see testbed.nodes.Place."""
        return self.start(argv, stdout=stdout, stderr=stderr, held=True)


def surroundings() -> dict[str, str]:
    """Return the environment of whoever called, who may have settings of their own."""
    return {**SETTINGS, **environ}
