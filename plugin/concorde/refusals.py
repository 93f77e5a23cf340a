"""Pods that were refused, told where people look: ADD notes it, and the node's agent makes an event of it.

Noted only where an agent has made the file, for somebody must empty it. Who cannot write it down goes on: the
runtime has the answer all the same. The API of Kubernetes is asked as the installer's service account, which
may make events and look at pods; only what runs in a pod of the cluster knows address and token.
"""

from __future__ import annotations

import fcntl
import os
import stat

from . import files, requests, state_files, strict_json
from .cni import INVALID_CONFIGURATION, NO_BANDWIDTH, TRY_AGAIN, CniError
from .configuration import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from http.client import HTTPResponse, HTTPSConnection
    from typing import Any

    from .requests import Request

    Note = dict[str, Any]
    Event = dict[str, Any]

_MOST = 1 << 16  # bytes in all: of a pod that is tried again and again, some hundred notes
_LONGEST = 1000  # characters of a message; an event has room for 1,024 bytes

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"  # where a kubelet puts token and certificate
HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
_COMPONENT = "concorde"
_PROMISE = (NO_BANDWIDTH, INVALID_CONFIGURATION)
_MOST_SECONDS = 10
_LARGEST = 1 << 16  # of a token (bytes)


def path(directory: str) -> str:
    """Where the notes of a network's directory lie."""
    return f"{directory}/{state_files.REFUSALS}"


def note(request: Request, problem: CniError) -> None:
    """Write down that an ADD was refused, if that is known to be of a pod, and an agent wants it."""
    namespace, slash, pod = request.pod.partition("/")
    if not slash or problem.code == TRY_AGAIN:
        return
    uid = requests.argument(os.environ.get("CNI_ARGS", ""), "K8S_POD_UID")
    try:
        directory = Identity(request.document).directory
    except CniError:
        return
    write(directory, {"namespace": namespace, "pod": pod, "uid": uid}, problem.code, problem.msg)


def write(directory: str, of: dict[str, str], code: int, message: str) -> None:
    """Write down what was refused to a pod, given its namespace, name and uid, if an agent wants it."""
    line = strict_json.encode({**of, "code": code, "message": message[:_LONGEST]})
    try:  # noqa: SIM105 - importing contextlib costs a millisecond
        _append(path(directory), line)
    except OSError:
        pass


def _append(file: str, line: bytes) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(file, flags)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_size + len(line) <= _MOST:
            os.write(descriptor, line)
    finally:
        os.close(descriptor)


def take(directory: str) -> list[Note]:
    """All notes, which are gone then; the file is made if it is missing. Raises CniError 108 and OSError."""
    state_files.directory(directory)
    descriptor = state_files.opened(path(directory))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        content = os.pread(descriptor, _MOST, 0)
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
    found = []
    for line in content.splitlines():
        try:
            found.append(strict_json.decode(line))
        except CniError:
            continue  # half of one, of a killed call
    return found


def are_there(directory: str) -> bool:
    """Whether take() has anything to do."""
    try:
        return os.stat(path(directory)).st_size > 0
    except FileNotFoundError:
        return True


def are_possible(account: str) -> bool:
    """Whether this runs in a pod that may ask the API at all."""
    return bool(os.environ.get(HOST)) and os.access(f"{account}/token", os.R_OK)


def event(note: Note, node: str, now: float) -> Event:
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


def post(account: str, events: list[Event]) -> tuple[int, str]:
    """Give the API some events, in order.

    Returns how many it is done with, having taken or refused them, and what went wrong last.
    """
    # This and ssl take 15 MB and a fifth of a second: whoever calls this is to end soon.
    from http.client import HTTPException

    done, problem = 0, ""
    try:
        token = files.read(f"{account}/token", _LARGEST).decode().strip()
        api = _api(account)
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
    except (OSError, ValueError, HTTPException) as error:
        return done, f"the API at {os.environ[HOST]}: {error}"
    return done, problem


class StatusError(ValueError):
    """The API says this instead of an answer, with a status of HTTP."""

    def __init__(self, status: object, message: object) -> None:
        super().__init__(f"it answers {status} {message}".strip())
        self.status = status


class Asked:
    """An answer of the API, to be read within a block: `with Asked(...) as answer`."""

    def __init__(self, account: str, where: str, patience: float) -> None:
        """Ask for a path, waiting so many seconds for each part of the answer.

        Raises OSError, ValueError and http.client.HTTPException.
        """
        token = files.read(f"{account}/token", _LARGEST).decode().strip()
        self._api = _api(account, patience)
        try:
            self._api.request("GET", where, headers={"Authorization": f"Bearer {token}"})
            self._answer = self._api.getresponse()
            if self._answer.status != 200:
                raise StatusError(self._answer.status, _message(self._answer.read()))
        except BaseException:
            self._api.close()
            raise

    def __enter__(self) -> HTTPResponse:
        return self._answer

    def __exit__(self, *_: object) -> None:
        self._api.close()


def _api(account: str, patience: float = _MOST_SECONDS) -> HTTPSConnection:
    """A connection to the API, which opens when it is asked. Raises OSError and ValueError."""
    import http.client
    import ssl

    context = ssl.create_default_context(cafile=f"{account}/ca.crt")
    # Certificates of clusters lack what Python from 3.13 on wants besides (RFC 5280).
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    port = int(os.environ.get(PORT, "443"))
    return http.client.HTTPSConnection(os.environ[HOST], port, timeout=patience, context=context)


def _given(api: HTTPSConnection, token: str, event: Event) -> tuple[int, bytes]:
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
