"""What a cluster's API is asked, by ``kubectl`` with a kubeconfig, wherever that runs."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from testbed.access.place import RUN_SECONDS, Place, Result
from testbed.kubernetes.manifests import Manifest, list_of
from testbed.scenario.faults import listed

# How long kubectl waits for a condition before it is looked at why that takes so long.
LOOK_SECONDS = 3
# What an API says that took a question, and had no answer within a minute, or heard none from its database or
# within ten seconds from its quotas (apiserver, plugin/resourcequota/controller.go). It may yet do what it
# was asked.
TOO_LATE = (
    "Error from server (Timeout)",
    "etcdserver: request timed out",
    "resource quota evaluation timed out",
)
ATTEMPTS = 5
# What an event says of a pod that will not run as things are, and how often until it is believed; the rest is
# on its way. A network may not be there yet, and of two ADDs at once the reference plugin firewall (1.1)
# fails one: a kubelet tries again after 10 to 15 s.
REFUSALS = {"FailedCreatePodSandBox": 2, "ErrImageNeverPull": 1, "CreateContainerError": 1, "Failed": 1}


class PodError(RuntimeError):
    """A pod does not run; the message holds what Kubernetes says about it."""


class Complaint(NamedTuple):
    """The last warning about a pod."""

    pod: str
    reason: str
    message: str
    times: int  # that it was warned for this reason

    @property
    def final(self) -> bool:
        """Whether the pod will not run as things are."""
        if self.reason in REFUSALS:
            return self.times >= REFUSALS[self.reason]
        return "Insufficient" in self.message


@dataclass(frozen=True)
class Client:
    """Asks the API server of one cluster."""

    cluster: str
    place: Place  # where kubectl runs
    kubectl: str
    kubeconfig: str  # on that place

    def command(self, *arguments: str) -> list[str]:
        """Return a command line of kubectl."""
        # What it learns about the API it keeps; without a home directory that would be in the root directory.
        cache = f"--cache-dir={self.kubeconfig}.cache"
        return [self.kubectl, f"--kubeconfig={self.kubeconfig}", cache, *arguments]

    def run(
        self, *arguments: str, stdin: str = "", check: bool = True, timeout: float = RUN_SECONDS
    ) -> Result:
        """Run kubectl; again, if the API was too late with its answer. Raises CommandError."""
        command = self.command(*arguments)
        for _ in range(ATTEMPTS):
            done = self.place.run(command, stdin=stdin, check=False, timeout=timeout)
            if done.status == 0 or not any(text in done.stderr for text in TOO_LATE):
                break
        return done.checked(self.place.name, command) if check else done

    def apply(self, manifests: Sequence[Manifest]) -> None:
        """Make what the manifests describe."""
        # Validation would fetch the whole schema first, and the server validates anyway.
        self.run("apply", "--validate=false", "--filename=-", stdin=json.dumps(list_of(manifests)))

    def get(self, *arguments: str) -> Any:
        """Return an answer as data."""
        return json.loads(self.run("get", "--output=json", *arguments).stdout)

    def find(self, *arguments: str, check: bool = True) -> dict[str, Any]:
        """Return what has a name, as data; nothing if there is none, or, without ``check``, no answer."""
        shown = self.run("get", *arguments, "--ignore-not-found", "--output=json", check=check)
        found: dict[str, Any] = shown.json() if shown.status == 0 and shown.stdout.strip() else {}
        return found

    def publish(self, node: str, status: Manifest, seconds: float) -> None:
        """Say what a node has, once its kubelet has said what it found there (needs kubectl 1.24)."""
        ready = ["--for=condition=Ready", f"--timeout={seconds:g}s", f"node/{node}"]
        self.run("wait", *ready, timeout=seconds + RUN_SECONDS)
        patch = ["--subresource=status", "--type=merge", f"--patch={json.dumps(status)}"]
        self.run("patch", "node", node, *patch)

    def execution(self, pod: str) -> list[str]:
        """Return the command line that leads into a pod."""
        return self.command("exec", "--stdin", pod, "--")

    def wait_until_ready(
        self, pods: Sequence[str], seconds: float, fault: Callable[[], str | None] = lambda: None
    ) -> None:
        """Wait until pods are ready. Raises PodError as soon as it is known that one will not be.

        ``fault`` says, now and then, what else has gone wrong in the meantime.
        """
        deadline = time.monotonic() + seconds
        while waiting := unready(found := self.get("pods")["items"], pods):
            # For one, the last to be started: of many kubectl asks five a second, and one of 1.32 gives all
            # together the time that one of 1.20 gives to each, so that a hundred were never ready.
            wait = ["wait", "--for=condition=Ready", f"--timeout={LOOK_SECONDS}s", f"pod/{waiting[-1]}"]
            if self.run(*wait, check=False, timeout=LOOK_SECONDS + RUN_SECONDS).status == 0:
                continue
            if text := fault():
                raise PodError(text)
            over = time.monotonic() > deadline
            for complaint in complaints(found, self.get("events")["items"], pods):
                if over or complaint.final:
                    raise PodError(f"pod {complaint.pod} of cluster {self.cluster}: {complaint.message}")
            if over:
                names = listed(waiting)
                raise PodError(f"cluster {self.cluster}: not ready after {seconds:g} s: {names}")

    def start_pod(
        self, manifest: Manifest, seconds: float, fault: Callable[[], str | None] = lambda: None
    ) -> None:
        """Make a pod and wait until it is ready, or else take it away. Raises PodError, as above."""
        self.apply([manifest])
        name = manifest["metadata"]["name"]
        try:
            self.wait_until_ready([name], seconds, fault)
        except PodError:
            self.delete_pod(name)
            raise

    def delete_pod(self, pod: str, wait: bool = True) -> None:
        """Let a pod go, or also wait until it is gone: its runtime has then called the plugins' DEL."""
        self.run("delete", "pod", pod, f"--wait={str(wait).lower()}")

    def forget_pod(self, pod: str) -> None:
        """Let the API forget a pod that was let go, and whose runtime has called the plugins' DEL.

        A kubelet (1.20) tells the API so only when it next looks at all pods, every 10 s
        (kubelet/status/status_manager.go, syncPeriod).
        """
        self.run("delete", "pod", pod, "--grace-period=0", "--force", "--wait=true")

    def delete_pods(self) -> None:
        """Let all pods go: their kubelets remove what they were made of, and at last the API forgets them.

        Not by force: of a pod that has just come, a kubelet (1.20) would leave the sandbox, and with it what
        the plugin made, to its garbage collection once a minute.
        """
        self.run("delete", "pods", "--all", "--all-namespaces", "--wait=false")


def unready(pods: Iterable[dict[str, Any]], wanted: Iterable[str]) -> list[str]:
    """Return which wanted pods are not ready, or not there, in the order of their names in ``wanted``."""
    ready = {pod["metadata"]["name"] for pod in pods if is_ready(pod)}
    return [name for name in wanted if name not in ready]


def complaints(
    pods: Iterable[dict[str, Any]], events: Iterable[dict[str, Any]], wanted: Iterable[str]
) -> list[Complaint]:
    """Return the last warning about each wanted pod that is not ready."""
    names = set(wanted)
    waiting = {
        pod["metadata"]["uid"]: pod["metadata"]["name"]
        for pod in pods
        if pod["metadata"]["name"] in names and not is_ready(pod)
    }
    times: Counter[tuple[str, str]] = Counter()
    last: dict[str, Complaint] = {}
    for event in sorted(events, key=lambda event: event.get("lastTimestamp") or ""):
        uid, reason = event["involvedObject"].get("uid"), event["reason"]
        if event.get("type") == "Warning" and uid in waiting:
            times[uid, reason] += event.get("count") or 1
            last[uid] = Complaint(waiting[uid], reason, event["message"], times[uid, reason])
    return list(last.values())


def is_ready(found: Mapping[str, Any]) -> bool:
    """Tell whether a pod or a node is ready."""
    conditions = found["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
