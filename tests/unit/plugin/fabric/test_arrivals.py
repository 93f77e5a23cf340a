"""What came to a node is told by the node that it came from, as far as anybody knows it."""

from __future__ import annotations

from pathlib import Path

from concorde import addresses
from concorde.fabric.arrivals import ELSEWHERE, Arrivals

HEAD = "IP address       HW type     Flags       HW address            Mask     Device\n"
A, B, OTHER = "0a:00:00:00:00:01", "0a:00:00:00:00:02", "0a:00:00:00:00:03"


def neighbour(address: str, hardware: str, device: str = "eth0") -> str:
    return f"{address:<16} 0x1         0x2         {hardware}     *        {device}\n"


def key(address: str, hardware: str) -> bytes:
    return addresses.parse(address).to_bytes(4, "big") + bytes.fromhex(hardware.replace(":", "")) + bytes(2)


def test_routed_packets_are_their_hardware_address_s_and_others_their_own(tmp_path: Path) -> None:
    table = tmp_path / "arp"
    table.write_text(HEAD + neighbour("10.0.0.1", A) + neighbour("10.0.0.9", OTHER, "eth1"))
    arrivals = Arrivals("eth0", str(table))
    counted = {
        key("10.0.0.1", A): 1,
        key("10.0.0.7", B): 2,
        key(ELSEWHERE, A): 10,
        key(ELSEWHERE, B): 100,
        key(ELSEWHERE, OTHER): 1000,
    }
    assert arrivals.by_node(counted, 0.0) == {"10.0.0.1": 11, "10.0.0.7": 2, ELSEWHERE: 1100}
    # Who answers for an address is looked up again, but not at each round.
    table.write_text(HEAD + neighbour("10.0.0.1", A) + neighbour("10.0.0.2", B))
    assert arrivals.by_node(counted, 0.5)[ELSEWHERE] == 1100
    assert arrivals.by_node(counted, 1.5) == {"10.0.0.1": 11, "10.0.0.2": 100, "10.0.0.7": 2, ELSEWHERE: 1000}
    arrivals.close()


def test_where_all_packets_name_a_node_nobody_looks_for_neighbours(tmp_path: Path) -> None:
    arrivals = Arrivals("eth0", str(tmp_path / "missing"))
    assert arrivals.by_node({key("10.0.0.1", A): 5}, 0.0) == {"10.0.0.1": 5}
    arrivals.close()
