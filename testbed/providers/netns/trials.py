"""What can make a scenario's trunks on this machine: found by trying, before anything is made."""

from __future__ import annotations

import functools
import os
import subprocess

from testbed.access.features import Feature
from testbed.access.local import ENVIRONMENT
from testbed.networks.trunks import ALL, RELAY, Means, Trunk, trunks
from testbed.networks.underlay import SWITCH
from testbed.scenario import Scenario

WITHOUT_NETEM = "this kernel has no netem (CONFIG_NET_SCH_NETEM; modprobe sch_netem)"


def chosen(scenario: Scenario) -> dict[Trunk, Means]:
    """Return what makes each trunk: the first that can. Raises LookupError with what this machine lacks."""
    return {trunk: _first(trunk) for trunk in trunks(scenario, SWITCH)}


def _first(trunk: Trunk) -> Means:
    for means in ALL:
        if means.suits(trunk.settings) and (means.feature is None or there(means.feature)):
            return means
    if RELAY.suits(trunk.settings):
        words = (
            f"delay: {WITHOUT_NETEM}, and our own relay needs /dev/net/tun, open to you "
            "(CONFIG_TUN; modprobe tun)"
        )
    else:
        field = next(name for name in ("jitter", "loss", "reorder") if getattr(trunk.settings, name))
        words = f"{field}: {WITHOUT_NETEM}, and our own relay can only delay; leave {field} out"
    raise LookupError(f"--provider netns: zones.{trunk.zone}.{words}")


@functools.cache
def there(feature: Feature) -> bool:
    """Tell whether this machine has a feature, in a network of its own, which ends with that."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--net", *feature.command]
    return subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=False).returncode == 0
