"""From the promise to the terms of a lease: which rate and burst a class needs to keep it."""

from __future__ import annotations

from . import enforcements, guarantees, shaping
from .configuration import Configuration, invalid
from .leases import Terms


def terms(configuration: Configuration, mtu: int) -> Terms:
    """The terms for a pod with this MTU (bytes). Raises CniError 7."""
    reserves = enforcements.reserves(configuration.enforcement)
    promise = guarantees.promise(configuration.document, capability_is_ceiling=reserves)
    # A guarantee on the uplink is a floor; the class on the pod's interface is then for its ceiling.
    limit = promise.ceiling if reserves else promise.limit
    if limit is None:
        return Terms(configuration.enforcement, promise.guarantee, None, None, None, promise.answers)
    rate = shaping.class_rate(limit, configuration.count, mtu)
    burst = configuration.burst or shaping.default_burst(rate)
    if burst > shaping.longest_burst(rate):
        raise invalid("burst", f"{burst} bytes take too long at {rate} bit/s for the kernel to count")
    return Terms(configuration.enforcement, promise.guarantee, promise.ceiling, rate, burst, promise.answers)
