"""How a program gets to a cluster's API, and works with it: the options that say so, the same for all."""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

from edge.http import Server
from edge.log import Logger
from edge.signals import when_to_end

Work = Callable[[Server, threading.Event], int]
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class AccessError(ValueError):
    """There is no way to an API as options say; the message names the option."""


class Access(NamedTuple):
    """Where an API is, and the files by which one is known there; without a URL there is none."""

    url: str
    identity: str = ""
    authority: str = ""
    token: str = ""

    def server(self, kept: int) -> Server:
        """Return the API, with so many connections kept. Raises AccessError for no URL, or missing files."""
        try:
            return Server(self.url, self.identity, self.authority, self.token, kept)
        except ValueError as error:
            raise AccessError(f"--api: {error}") from None
        except OSError as error:
            raise AccessError(f"--identity, --authority: {error}") from None


def work_with(reach: Callable[[], Server], work: Work, log: Logger) -> int:
    """Work with an API until a signal sets the event: what ``work`` returns, or 2 if there is no way to it.

    ``reach`` raises AccessError then.
    """
    stop = threading.Event()
    when_to_end(stop.set)
    try:
        server = reach()
    except AccessError as error:
        log(str(error))
        return 2
    with closing(server):
        return work(server, stop)


def path_in(group: str, kind: str) -> Callable[[str], str]:
    """Return what makes an option that names an object of a namespace its path in an API."""

    def path(text: str) -> str:
        namespace, _, name = text.partition("/")
        if not namespace or not name or "/" in name:
            raise argparse.ArgumentTypeError(f"{text[:60]!r} is not like kube-system/proxy")
        return f"{group}/namespaces/{namespace}/{kind}/{name}"

    return path


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let a program be told where the API is."""
    add = parser.add_argument
    add("--api", metavar="URL", default="", help="the API server, like https://192.168.56.2:6443")
    add("--identity", metavar="PEM", default="", help="a file with the key and the certificate to ask with")
    add("--authority", metavar="PEM", default="", help="a file with the certificate that vouches for the API")
    add("--token", metavar="FILE", default="", help="a file with a token to ask with; read at each question")
    add("--in-cluster", action="store_true", help="API, authority and token as a pod has them, unless given")


def access_of(told: argparse.Namespace) -> Access:
    """Return what options say."""
    if not told.in_cluster:
        return Access(told.api, told.identity, told.authority, told.token)
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
    return Access(
        told.api or f"https://{f'[{host}]' if ':' in host else host}:{port}",
        told.identity,
        told.authority or f"{ACCOUNT}/ca.crt",
        told.token or f"{ACCOUNT}/token",
    )
