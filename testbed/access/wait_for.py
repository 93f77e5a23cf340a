"""Waits until an address answers or a command says something, or the component that should has ended.

Run as a program where the component is, with its wishes as JSON on standard input: ``address``, a URL or the
path of a Unix socket, or ``command``; ``ended``, a file that appears when the component ends; ``seconds``. A
port that nobody listens on yet announces nothing, so it is tried again and again. Standard library only.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.request

AGAIN_SECONDS = 0.05


def complaint(address: str) -> str | None:
    """Return why an address does not answer; None if it does."""
    try:
        if address.startswith("/"):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(address)
        else:
            # Whether it is ready, it may tell anybody, and who it is does not matter for that.
            context = ssl._create_unverified_context()
            urllib.request.urlopen(address, timeout=20, context=context).close()
    except OSError as error:
        return str(error)
    return None


def silence(command: list[str]) -> str | None:
    """Return why a command says nothing; None if it does, and ends well."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8")
    if done.returncode == 0 and done.stdout.strip():
        return None
    return done.stderr.strip() or done.stdout.strip() or "nothing"


def main() -> None:
    """Wait as told."""
    wishes = json.load(sys.stdin)
    deadline = time.monotonic() + wishes["seconds"]
    asked = wishes.get("address") or " ".join(wishes["command"])
    while True:
        text = complaint(asked) if "address" in wishes else silence(wishes["command"])
        if text is None:
            return
        if os.path.exists(wishes["ended"]):  # noqa: PTH110 (pathlib would be one more import)
            sys.exit("it has ended")
        if time.monotonic() > deadline:
            sys.exit(f"{asked}: {text}")
        time.sleep(AGAIN_SECONDS)


if __name__ == "__main__":
    main()
