"""Where a cluster's services have their addresses and ports: in a range of the cluster's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network

from testbed.scenario import blocks, connections
from testbed.scenario.model import Scenario, Service, Transfer

# Kubernetes' usual one, then the next ones of as many addresses.
FIRST, USUAL_PREFIX = IPv4Network("10.96.0.0/16"), 16
END = IPv4Network("10.0.0.0/8")
# What a kube-apiserver takes: no more than 20 bits (its validateClusterIPFlags), no fewer than 3.
SHORTEST_PREFIX, LONGEST_PREFIX = 12, 29
# The first address of a range is that of a cluster's own API; from it to the tenth, clusters' own things are.
# The tenth says services' names, as kubeadm has it (its GetDNSIP); of a small range it is the last.
API, NAMES, FIRST_SERVICE, LAST = 1, 10, 11, -2

Ranges = Mapping[str, IPv4Network]  # by cluster


def ranges(scenario: Scenario) -> dict[str, IPv4Network]:
    """Return each cluster's range: what it says, else the next usual one in which nobody else has addresses.

    Where there is none left it is the first, in which services cannot be reached then.
    """
    return {name: found or FIRST for name, found in free_ranges(scenario).items()}


def free_ranges(scenario: Scenario) -> dict[str, IPv4Network | None]:
    """Return the same, and nothing where there is none left."""
    free = blocks.free(END, USUAL_PREFIX, scenario.ranges, FIRST)
    return {name: one.service_cidr or next(free, None) for name, one in scenario.clusters.items()}


def every(scenario: Scenario) -> dict[str, Service]:
    """Return all services by name: the scenario's, then its connections'."""
    return {**scenario.services, **connections.services(scenario)}


def clusters(scenario: Scenario) -> list[str]:
    """Return the clusters that have services."""
    return list(dict.fromkeys(service.cluster for service in every(scenario).values()))


def addresses(scenario: Scenario, within: Ranges) -> dict[str, IPv4Address]:
    """Return each service's address: what it says, else the next of its cluster's range that is free.

    ``within`` are the clusters' ranges. Raises LookupError where one has no room.
    """
    taken = {service.address for service in scenario.services.values()}
    free = {name: (one for one in usable(network) if one not in taken) for name, network in within.items()}
    found = {}
    for name, service in every(scenario).items():
        address = service.address or next(free[service.cluster], None)
        if address is None:
            raise LookupError(f"{within[service.cluster]} has no address left for service {name!r}")
        found[name] = address
    return found


def usable(network: IPv4Network) -> Iterator[IPv4Address]:
    """Yield the addresses of a range that services are given: none that Kubernetes gives by itself."""
    first = FIRST_SERVICE if _is_large(network) else API + 1
    every = (network[number] for number in range(first, network.num_addresses - 1))
    return (address for address in every if address != of_names(network))


def of_names(network: IPv4Network) -> IPv4Address:
    """Return the address of a range at which pods ask for services' names."""
    return network[NAMES if _is_large(network) else LAST]


def _is_large(network: IPv4Network) -> bool:
    return network.num_addresses > 2 * FIRST_SERVICE


def sent(scenario: Scenario) -> dict[str, list[Transfer]]:
    """Return what is sent to each service, in the order in which it has its ports."""
    found: dict[str, list[Transfer]] = {name: [] for name in scenario.services}
    for transfer in scenario.transfers:
        if transfer.destination in found:
            found[transfer.destination].append(transfer)
    return found


def ports(scenario: Scenario) -> dict[str, int]:
    """Return the port of its service to which each transfer is sent that is sent to one, by its label."""
    return {
        transfer.label: scenario.services[name].port + number
        for name, transfers in sent(scenario).items()
        for number, transfer in enumerate(transfers)
    }
