"""An enforcement without a half in the plugin: a token bucket on the pod's eth0 limits it to its promise."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from testbed.enforcements.enforcement import Enforcement, Up
from testbed.enforcements.registry import register
from testbed.scenario.enforcements import Kind
from testbed.scenario.words import Part


class Bucket(Part):
    """A scenario's settings.enforcement.token-bucket."""

    burst: int = Field(
        128 * 1024, ge=1600, description="bytes; by default two of the largest offloaded packets"
    )
    latency: float = Field(0.05, gt=0, le=1, description="seconds that a packet may wait for its tokens")


@dataclass(frozen=True)
class TokenBucket(Enforcement):
    """Limits each pod by a bucket; pods are attached as without any enforcement."""

    settings: Bucket

    def install(self, up: Up) -> None:
        """Put a token bucket on every pod with a guarantee."""
        burst, latency = str(self.settings.burst), f"{self.settings.latency * 1000:g}ms"
        for name, rate in self._promises().items():
            bucket = ["rate", f"{rate}bit", "burst", burst, "latency", latency]
            up.pods[name].run(["tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *bucket])

    def withdraw(self, up: Up) -> None:
        """Take the buckets away."""
        for name in self._promises():
            up.pods[name].run(["tc", "qdisc", "del", "dev", "eth0", "root"])

    def check(self, up: Up) -> list[str]:
        """Return every pod that has lost its bucket."""
        faults = []
        for name in self._promises():
            shown = up.pods[name].run(["tc", "-j", "qdisc", "show", "dev", "eth0"]).json()
            if not any(qdisc["kind"] == "tbf" for qdisc in shown):
                faults.append(f"pod {name}: no token bucket on eth0")
        return faults

    def _promises(self) -> dict[str, int]:
        """Return what each pod was promised, bits per second."""
        pods = self.addressing.scenario.pods.items()
        return {name: pod.guarantee for name, pod in pods if pod.guarantee is not None}


register(Kind("token-bucket", claims=frozenset({"ceiling"}), told="nothing", settings=Bucket()), TokenBucket)
