"""How many payload bytes a promised rate can carry: frames, payload, expected goodput.

``tc`` counts Ethernet frames, a user counts payload. A class of 1 Gbit/s on a pod's eth0 therefore gives
0.955 Gbit/s of TCP payload, and that is a kept promise. This module turns the one into the other.
"""

from __future__ import annotations

from typing import Literal

Protocol = Literal["tcp", "udp"]
Count = Literal["layer2", "payload"]

ETHERNET_HEADER = 14  # IEEE 802.3; the kernel's ETH_HLEN. HTB sees neither preamble nor frame check sequence
IPV4_HEADER = 20  # RFC 791, no options
UDP_HEADER = 8  # RFC 768
TCP_HEADER = 20  # RFC 9293, no options
LEAST_FRAME = 60  # without its check sequence: the kernel's ETH_ZLEN
FULL_FRAME = 1500 + ETHERNET_HEADER  # that promises on a link are meant in, as the plugin has it
TCP_TIMESTAMPS = 12  # RFC 7323: ten bytes, padded by two; on by default (net.ipv4.tcp_timestamps)


def payload_bytes(mtu: int, protocol: Protocol) -> int:
    """Return the payload bytes in one full IP packet of ``mtu`` bytes. Raises ValueError if none fits."""
    header = UDP_HEADER if protocol == "udp" else TCP_HEADER + TCP_TIMESTAMPS
    payload = mtu - IPV4_HEADER - header
    if payload <= 0:
        raise ValueError(f"an MTU of {mtu} bytes has no room for {protocol.upper()} payload")
    return payload


def packet_bytes(payload: int) -> int:
    """Return the bytes of the IP packet that carries one UDP datagram with so many bytes of payload."""
    return payload + UDP_HEADER + IPV4_HEADER


def frame_bytes(mtu: int, overhead: int = 0) -> int:
    """Return the layer-2 bytes that a class charges for one full packet of a pod's ``mtu``.

    On the pod's eth0 (likewise its bridge port and the VTEP) it sees the inner frame; on the physical
    interface the pod network's ``overhead`` comes on top (testbed.scenario.networks). Kernels before Linux
    6.17 charge encapsulated GSO packets less than that (net: account for encap headers in qdisc pkt len, July
    2025).
    """
    return mtu + ETHERNET_HEADER + overhead


def link_bytes(frame: int, more: int) -> int:
    """Return the bytes of a link that a frame takes, of a kind on which frames take ``more`` than their own.

    Those are 24 on Ethernet: preamble 8, check sequence 4, gap 12 (IEEE 802.3). With 0 there is no least
    frame either.
    """
    return max(frame, LEAST_FRAME) + more if more else frame


def of_full_frames(rate_bps: float, more: int) -> float:
    """Return what full frames leave of a link's rate for themselves: 1514/1538 on Ethernet."""
    return rate_bps * FULL_FRAME / (FULL_FRAME + more)


def payload_share(mtu: int, protocol: Protocol, overhead: int = 0) -> float:
    """Return the share of the charged bytes that is payload: 1398/1464 for TCP in a pod of MTU 1450."""
    return payload_bytes(mtu, protocol) / frame_bytes(mtu, overhead)


def expected_goodput(
    rate_bps: float, mtu: int, protocol: Protocol, count: Count = "layer2", overhead: int = 0
) -> float:
    """Return the payload bits per second that a guarantee of ``rate_bps`` must give.

    ``mtu`` is the pod's, in bytes. With ``count`` = ``payload`` the guarantee already is one of payload.
    Raises ValueError for an MTU without room for payload.
    """
    return rate_bps if count == "payload" else rate_bps * payload_share(mtu, protocol, overhead)
