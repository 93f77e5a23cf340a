"""Names: which ones are accepted, and which ones follow from others.

Every name from outside passes through here before it may appear in a path, in a command line or in a line
of an `ip -batch`, where blanks, quotes, `#` and a leading dash would be syntax.
"""

from __future__ import annotations

_ALPHANUMERIC = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_NAME = _ALPHANUMERIC | frozenset("_.-")
_PATH = _NAME | frozenset("/:@+,=")

_LONGEST_INTERFACE = 15  # IFNAMSIZ less the terminating zero, linux/if.h


def is_identifier(text: str) -> bool:
    """A container id or a network name: alphanumeric first, then also `_`, `.` and `-`.

    Source: CNI specification, sections 1 (`name`) and 2 (`CNI_CONTAINERID`). At most 200 characters, so
    that it can be a file's name.
    """
    return 0 < len(text) <= 200 and text[0] in _ALPHANUMERIC and _NAME.issuperset(text)


def is_interface(text: str) -> bool:
    """An interface name. Stricter than the kernel's dev_valid_name(), which allows quotes and `#`."""
    # The kernel keeps "all" and "default" for itself (sysctl_dev_name_is_allowed, net/ipv4/devinet.c).
    return is_identifier(text) and len(text) <= _LONGEST_INTERFACE and text not in ("all", "default")


def is_path(text: str) -> bool:
    """An absolute path made of letters, digits and `_.-/:@+,=`, which never leads upwards; not `/`."""
    if not (0 < len(text) <= 4000 and text[0] == "/" and _PATH.issuperset(text)):
        return False
    parts = text.split("/")
    return ".." not in parts and any(part not in ("", ".") for part in parts)


def digest(*parts: str) -> int:
    """64-bit FNV-1a of names joined by `/`, which no name contains.

    Not hashlib: loading OpenSSL would cost 2 ms of every call, and nothing here needs to withstand an
    attacker; a clash is noticed by the ledger. Source: RFC 9923, section 2.
    """
    value = 0xCBF29CE484222325
    for byte in "/".join(parts).encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def host_veth(network: str, container: str, interface: str) -> str:
    """The node's end of an attachment's veth pair. It follows from the names, so DEL needs no look-up."""
    return f"veth{_folded(digest(network, container, interface), 44):011x}"


def is_host_veth(text: str) -> bool:
    """Whether a name looks like one of host_veth()."""
    return len(text) == 15 and text.startswith("veth") and set(text[4:]) <= set("0123456789abcdef")


def default_bridge(network: str) -> str:
    """`cni-<network>`, or a shortened name which still differs between networks."""
    whole = f"cni-{network}"
    if len(whole) <= _LONGEST_INTERFACE:
        return whole
    return f"cni-{network[:5]}-{_folded(digest(network), 20):05x}"


def _folded(value: int, bits: int) -> int:
    # The highest bits of FNV hardly depend on the last byte; RFC 9923, section 3 (xor-folding).
    return (value >> bits ^ value) & ((1 << bits) - 1)
