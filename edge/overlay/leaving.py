"""The program: takes a node's subnet out of the store, for all to see, as the end of its lease would.

``/usr/bin/python3 -IS PATH/edge leave SETTINGS.json``, with the settings of the node's resolver, once that
has ended: it would write its subnet again. From a cluster's API nodes are taken by deleting them there.
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Sequence

from edge.overlay import leases
from edge.overlay import settings as reading
from edge.overlay.etcd import SUBNETS
from edge.overlay.http import Question, Server
from edge.overlay.logger import Logger
from edge.overlay.settings import UnsoundError
from edge.overlay.store import AwayError


def main(arguments: Sequence[str]) -> int:
    """Delete the key; return 1 if the store does not answer, 2 for settings that cannot be."""
    log = Logger(sys.stderr)
    try:
        settings = reading.told("leave", arguments)
        if settings.node:
            log("nodes leave by the cluster's API: delete the Node")
            return 2
        key = b64encode((SUBNETS + leases.key_of(settings.subnet)).encode()).decode()
        server = Server(settings.store, settings.identity, settings.authority)
        server.ask(Question("POST", "/v3/kv/deleterange", {"key": key}))
    except (UnsoundError, ValueError) as error:
        log(str(error))
        return 2
    except (AwayError, OSError) as error:
        log(f"the store is unavailable: {error}")
        return 1
    return 0
