"""Refused pods as events of Kubernetes: what they look like, and how its API is given one.

It is asked as the installer's service account, which may make events and nothing else. Only what runs in a
pod of the cluster knows address and token; elsewhere nobody is told.
"""

from __future__ import annotations

import os

from . import files
from .cni import INVALID_CONFIGURATION, NO_BANDWIDTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from http.client import HTTPSConnection
    from typing import Any

    from .refusals import Note

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"  # where a kubelet puts token and certificate
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_COMPONENT = "concorde"
_PROMISE = (NO_BANDWIDTH, INVALID_CONFIGURATION)
_MOST_SECONDS = 10
_LARGEST = 1 << 16  # of a token (bytes)


def are_possible(account: str) -> bool:
    """Whether this runs in a pod that may ask the API at all."""
    return bool(os.environ.get(HOST)) and os.access(f"{account}/token", os.R_OK)


def event(note: Note, node: str, now: float) -> dict[str, Any]:
    """The event of a refusal. Source: Kubernetes API reference, Event v1 core."""
    from time import gmtime, strftime

    at = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(now))
    of = {"apiVersion": "v1", "kind": "Pod", "namespace": note["namespace"], "name": note["pod"]}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{note['pod']}.", "namespace": note["namespace"]},
        "involvedObject": {**of, **({"uid": note["uid"]} if note["uid"] else {})},
        "type": "Warning",
        "reason": "PromiseRefused" if note["code"] in _PROMISE else "NetworkRefused",
        "message": note["message"],
        "source": {"component": _COMPONENT, "host": node},
        "reportingComponent": _COMPONENT,
        "reportingInstance": node,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def post(account: str, events: list[dict[str, Any]]) -> tuple[int, str]:
    """Give the API some events, in order.

    Returns how many it is done with, having taken or refused them, and what went wrong last.
    """
    # These take 15 MB and a fifth of a second: whoever calls this is to end soon.
    import http.client
    import ssl

    done, problem = 0, ""
    try:
        token = files.read(f"{account}/token", _LARGEST).decode().strip()
        context = ssl.create_default_context(cafile=f"{account}/ca.crt")
        # Certificates of clusters lack what Python from 3.13 on wants besides (RFC 5280).
        context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
        api = http.client.HTTPSConnection(
            os.environ[HOST], int(os.environ.get(PORT, "443")), timeout=_MOST_SECONDS, context=context
        )
        try:
            for one in events:
                status, said = _given(api, token, one)
                if status == 429 or status >= 500:
                    return done, f"the API answers {status}"
                if status >= 300:
                    problem = f"the API refuses an event: {status} {_message(said)}"
                done += 1
        finally:
            api.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return done, f"the API at {os.environ[HOST]}: {error}"
    return done, problem


def _given(api: HTTPSConnection, token: str, event: dict[str, Any]) -> tuple[int, bytes]:
    """Status and content of the API's answer to an event."""
    import json

    where = f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    api.request("POST", where, json.dumps(event), headers)
    answer = api.getresponse()
    return answer.status, answer.read()


def _message(said: bytes) -> str:
    import json

    try:
        return str(json.loads(said).get("message", ""))[:200]
    except (AttributeError, ValueError):
        return ""
