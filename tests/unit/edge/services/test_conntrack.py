"""Which flows go where they should not."""

from __future__ import annotations

import pytest

from edge.services.conntrack import Flow, stale
from edge.services.rules import Port, Target

DNS, OTHER = Port("10.96.0.10", "udp", 53), Port("10.96.0.11", "udp", 53)
WEB = Port("10.96.0.11", "tcp", 53)
ONE, TWO = Target("10.61.0.2", 8053), Target("10.61.0.3", 8053)
SERVERS = {Port(one.address, "udp", one.port) for one in (ONE, TWO)}


@pytest.mark.parametrize(
    ("flow", "expected"),
    [
        (Flow(DNS, ONE, b""), False),
        (Flow(DNS, TWO, b""), True),  # its endpoint went
        (Flow(DNS, Target(DNS.address, 53), b""), True),  # it began before there was a service
        (Flow(OTHER, TWO, b""), True),  # its service went
        (Flow(OTHER, Target(OTHER.address, 53), b""), False),  # to nobody of ours
        (Flow(OTHER, Target("10.61.0.9", 8053), b""), False),  # of another proxy
        (Flow(WEB, TWO, b""), False),  # an endpoint by another protocol
    ],
)
def test_a_flow_is_stale_if_it_goes_to_no_endpoint_of_its_service(flow: Flow, expected: bool) -> None:
    assert stale(flow, {DNS: {ONE}}, SERVERS) is expected
