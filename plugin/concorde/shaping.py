"""The paper's shaping: on the pod's eth0 a root HTB with one class, rate = ceil = the pod's bandwidth.

Source: Concorde paper, section 3.2 and figure 10; kernel net/sched/sch_htb.c. Only rendering and sums.
"""

from __future__ import annotations

ETHERNET_HEADER = 14
TCP_IP_HEADERS = 52  # IPv4 20, TCP 20, timestamps option 12

PAPER_BURST = 10 << 20  # "burst 10Mb" is mebibytes to tc
# How long the paper's burst lasts at the least of its rates, 1 Gbit/s: 84 ms.
_PAPER_RATE = 1_000_000_000
_LEAST_BURST = 3200  # two full frames of 1500 bytes, or no rate would be reached
# The kernel keeps a burst as time: 32 bits in ticks of 64 ns are 274 s (include/net/pkt_sched.h).
_LONGEST_BURST_SECONDS = 200

LARGEST_PACKET = 65536  # GSO_LEGACY_MAX_SIZE, include/linux/netdevice.h: what a veth pair starts with
_LONGEST_PACKET_MILLISECONDS = 2

# The class shares with no other, so the quantum is of no account, but left out the kernel computes one of
# rate / r2q, and warns above 16 Mbit/s (htb_change_class). One largest offloaded packet is a sane turn.
QUANTUM = LARGEST_PACKET


def class_rate(limit: int, count: str, mtu: int) -> int:
    """The class's rate (bits per second of layer 2) for a promised rate.

    HTB counts frames with their Ethernet header. With count `payload` the promise is meant in bytes of TCP
    payload, so the rate grows by frame / payload at full segments: 1464 / 1398 for an MTU of 1450.
    """
    if count == "layer2":
        return limit
    return -(-limit * (mtu + ETHERNET_HEADER) // (mtu - TCP_IP_HEADERS))


def default_burst(rate: int) -> int:
    """The burst (bytes) for a rate (bits per second).

    The paper's 10 MiB from 1 Gbit/s up. Below, the same 84 ms: 10 MiB at 10 Mbit/s would let a pod send
    for 8 seconds without any limit.
    """
    return max(_LEAST_BURST, min(PAPER_BURST, PAPER_BURST * rate // _PAPER_RATE))


def longest_burst(rate: int) -> int:
    """The largest burst (bytes) the kernel can hold for a rate (bits per second)."""
    return rate * _LONGEST_BURST_SECONDS // 8


def largest_packet(rate: int) -> int:
    """The most an offloaded packet may hold (bytes) at a rate (bits per second): what passes in 2 ms.

    HTB lets a packet go in one piece, and TCP makes it as large as the device allows when the round trip is
    short (net/ipv4/tcp_output.c, tcp_tso_autosize). The usual 64 KiB would be 26 ms of a 20 Mbit/s class: a
    rate that comes in lumps. From 262 Mbit/s up nothing changes; two full frames are the least.
    """
    return max(_LEAST_BURST, min(LARGEST_PACKET, rate // 8 * _LONGEST_PACKET_MILLISECONDS // 1000))


def batch(interface: str, rate: int, burst: int) -> str:
    """`tc -batch` text: rate in bits per second, burst in bytes."""
    return (
        f"qdisc add dev {interface} root handle 1: htb default 1\n"
        f"class add dev {interface} parent 1: classid 1:1 htb"
        f" rate {rate}bit ceil {rate}bit burst {burst}b cburst {burst}b quantum {QUANTUM}\n"
    )


def shown_rate(rate: int) -> str:
    """A rate (bits per second) as tc prints it, which rounds.

    Source: iproute2, lib/utils_math.c get_rate64 and tc/tc_util.c tc_print_rate. The kernel holds bytes.
    """
    value = rate // 8 * 8
    for unit in ("bit", "Kbit", "Mbit", "Gbit"):
        if value < 1000 or (value % 1000 and value < 1_000_000):
            return f"{value}{unit}"
        value //= 1000
    return f"{value}Tbit"


def rate_shown(shown: str) -> int:
    """The rate (bits per second) that tc prints so; what it rounded off is lost."""
    number = shown.rstrip("bitKMGT")
    return int(float(number) * 1000 ** ("", "K", "M", "G", "T").index(shown[len(number) : -3]))


def classes(shown: str) -> dict[str, tuple[str, str, str, str, str]]:
    """Each HTB class's rate, ceil, overhead, mpu and parent, as tc prints them, in `tc -d -j class show`.

    Without -d no mpu is shown (iproute2, tc/q_htb.c). It is plain text up to iproute2 6.1 whatever `-j` says,
    later JSON with bytes per second.
    """
    if shown.lstrip().startswith("["):
        import json

        return {
            entry["handle"]: (
                shown_rate(entry["rate"] * 8),
                shown_rate(entry["ceil"] * 8),
                *shown_count(entry.get("overhead", 0), entry.get("mpu_rate", 0)),
                entry.get("parent", ""),
            )
            for entry in json.loads(shown)
            if entry.get("class") == "htb"
        }
    found = {}
    for fields in map(str.split, shown.splitlines()):
        if fields[:2] == ["class", "htb"] and "rate" in fields and "ceil" in fields:
            said = dict(zip(fields, fields[1:]))
            overhead, least = said.get("overhead", "0"), said.get("mpu", "0b")
            found[fields[2]] = said["rate"], said["ceil"], overhead, least, said.get("parent", "")
    return found


def shown_count(overhead: int, least: int) -> tuple[str, str]:
    """A class's overhead and mpu (bytes) as tc prints them."""
    return f"{overhead}", f"{least}b"


def rates_of_class(shown: str) -> tuple[str, str] | None:
    """Rate and ceil of class 1:1 in the output of `tc -j class show`."""
    found = classes(shown).get("1:1")
    return None if found is None else found[:2]
