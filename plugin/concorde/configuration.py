"""The network configuration: what an operator writes, checked key by key.

Two classes, because DEL and GC must go through whatever else has become wrong with the configuration:
Identity is all they need, Configuration is what ADD, CHECK and STATUS need.
"""

from __future__ import annotations

from . import addresses, files, names
from .cni import INVALID_CONFIGURATION, CniError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENFORCEMENTS = ("pod", "node", "none", "fabric")  # modules of `enforcements`
COUNTS = ("layer2", "payload")
DEFAULT_STATE = "/run/concorde"
DEFAULT_LISTS = "/etc/cni/net.d"  # of containerd and CRI-O
DEFAULT_MTU = 1500
_LONGEST = 4096  # of flannel's file (bytes)

LEAST_RATE, MOST_RATE = 1_000, 1_000_000_000_000  # bits per second
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LONGEST_QUANTITY = 40


class Identity:
    """Which network this is, and where its state lies."""

    def __init__(self, document: dict[str, Any]) -> None:
        """Check the keys that name the network. Raises CniError 7."""
        self.document = document
        self.name = network_name(document)
        self.state = directory(document, "stateDir", DEFAULT_STATE)
        self.directory = f"{self.state}/{self.name}"
        self.node_directory = node_directory(self.state)
        self.bridge = text(document, "bridge", names.default_bridge(self.name))
        if not names.is_interface(self.bridge):
            raise invalid("bridge", f"{shown(self.bridge)} is not an interface name")

    def require_names(self) -> None:
        """Refuse names that this plugin, or the kernel, gives to something else. Raises CniError 7.

        Not for DEL and GC, which have to go through with what the version before accepted.
        """
        if self.directory == self.node_directory:
            raise invalid("name", f"{shown(self.name)} is where this plugin keeps what all networks share")
        if self.bridge == "lo" or names.is_host_veth(self.bridge):
            raise invalid("bridge", f"{shown(self.bridge)} is the name of another kind of interface")
        if self.bridge == text(self.document, "uplink", ""):
            raise invalid("bridge", f"{shown(self.bridge)} is the uplink")


class Configuration(Identity):
    """Everything an operator can set."""

    def __init__(self, document: dict[str, Any]) -> None:
        """Check every key that does not need a look at the node. Raises CniError 7."""
        super().__init__(document)
        self.require_names()
        self.enforcement = choice(document, "enforcement", ENFORCEMENTS)
        self.count = choice(document, "count", COUNTS)
        self.burst = number(document, "burst", 1600, 1 << 30)
        self.default_route = flag(document, "isDefaultGateway")
        self.previous = table(document, "prevResult")
        self.dns = table(document, "dns")
        self._mtu = number(document, "mtu", addresses.LEAST_MTU, addresses.MOST_MTU)
        self._subnet = text(document, "subnet", "")
        self._subnet_file = text(document, "subnetFile", "")
        self.lists = text(document, "confDir", DEFAULT_LISTS)
        if not names.is_path(self.lists):
            raise invalid("confDir", f"{shown(self.lists)} is not a plain absolute path")
        if self._subnet and self._subnet_file:
            raise invalid("subnetFile", "give either subnet or subnetFile, not both")
        if self._subnet_file and not names.is_path(self._subnet_file):
            raise invalid("subnetFile", f"{shown(self._subnet_file)} is not a plain absolute path")

    @property
    def names_subnet(self) -> bool:
        """Whether the plugin can make interfaces here; if not, it can only follow another in a chain."""
        return bool(self._subnet or self._subnet_file)

    @property
    def names_bridge(self) -> bool:
        """Whether it is said to make interfaces; a subnet file alone may be there for its MTU."""
        return bool(self._subnet or (self._subnet_file and self.document.get("bridge")))

    def subnet(self) -> tuple[addresses.Subnet, int]:
        """The pods' subnet on this node and the pods' MTU (bytes).

        Raises CniError 7 when it is missing or malformed, or flannel has not written its file yet.
        """
        if self._subnet_file:
            try:
                found, overlay_mtu = _of_flannel(self._subnet_file)
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise invalid("subnetFile", f"{self._subnet_file}: {reason}") from error
            return found, self._mtu or overlay_mtu
        if not self._subnet:
            raise invalid("subnet", "needed, or subnetFile, unless the plugin follows another in a chain")
        try:
            return addresses.parse_subnet(self._subnet), self._mtu or DEFAULT_MTU
        except ValueError as error:
            raise invalid("subnet", f"{shown(self._subnet)} {error}") from error

    def cluster(self) -> addresses.Subnet | None:
        """The network that all nodes' pods are in, if that is known."""
        return _flannel_network(self._subnet_file) if self._subnet_file else None

    def node_mtu(self) -> int:
        """The pods' MTU (bytes), also where another plugin gives the addresses. Raises CniError 7."""
        return self.subnet()[1] if self.names_subnet else self._mtu or DEFAULT_MTU


def node_directory(state: str) -> str:
    """Where the state lies that all networks of the node share."""
    return f"{state.rstrip('/')}/node"


def invalid(path: str, problem: str) -> CniError:
    """The error for a bad value at a path of the configuration."""
    return CniError(INVALID_CONFIGURATION, f"{path}: {problem}")


def text(document: dict[str, Any], key: str, default: str) -> str:
    """A string, or the default when the key is missing or null. Raises CniError 7."""
    value = document.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise invalid(key, f"{shown(value)} is not a string")
    return value


def network_name(document: dict[str, Any]) -> str:
    """The network's name. Raises CniError 7."""
    name = text(document, "name", "")
    if not names.is_identifier(name):
        raise invalid("name", f"{shown(name)} is not a network name")
    return name


def directory(document: dict[str, Any], key: str, default: str) -> str:
    """A directory on the node, without a slash at its end. Raises CniError 7."""
    path = text(document, key, default)
    if not names.is_path(path):
        raise invalid(key, f"{shown(path)} is not a plain absolute path")
    return path.rstrip("/")


def choice(document: dict[str, Any], key: str, choices: tuple[str, ...]) -> str:
    """One of the choices; the first is the default. Raises CniError 7."""
    value = text(document, key, choices[0])
    if value not in choices:
        raise invalid(key, f"{shown(value)} is not one of " + ", ".join(choices))
    return value


def number(document: dict[str, Any], key: str, least: int, most: int) -> int | None:
    """An integer within limits, or None when the key is missing. Raises CniError 7."""
    value = document.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise invalid(key, f"{shown(value)} is not an integer from {least} to {most}")
    return value


def flag(document: dict[str, Any], key: str) -> bool | None:
    """True, false, or None when the key is missing or null. Raises CniError 7."""
    value = document.get(key)
    if value is not None and not isinstance(value, bool):
        raise invalid(key, f"{shown(value)} is neither true nor false")
    return value


def table(document: dict[str, Any], key: str) -> dict[str, Any] | None:
    """An object, or None when the key is missing or null. Raises CniError 7."""
    value = document.get(key)
    if value is not None and not isinstance(value, dict):
        raise invalid(key, f"{shown(value)} is not an object")
    return value


def bits_per_second(text: str) -> int:
    """A rate such as `1G`, `500M`, `1Gi`, `1e9` or `0.5G`, in bits per second, as Kubernetes reads it.

    Grammar: k8s.io/apimachinery/pkg/api/resource/quantity.go. A fraction of a bit is rounded up, as
    Quantity.Value() does. Raises ValueError, with a message for
    people, for anything malformed or outside 1 kbit/s to 1 Tbit/s.
    """
    numerator, denominator = _ratio(text)
    return in_range(-(-numerator // denominator))


def in_range(rate: int) -> int:
    """The same rate (bits per second). Raises ValueError outside 1 kbit/s to 1 Tbit/s."""
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise ValueError("is outside 1k to 1T (bits per second)")
    return rate


def _ratio(text: str) -> tuple[int, int]:
    number = text.rstrip("".join(_BINARY) + "numkMGTPE")
    suffix = text[len(number) :]
    mantissa, mark, power_text = number.replace("E", "e").partition("e")
    exponent = _exponent(power_text) if mark else 0
    whole, _, fraction = mantissa.removeprefix("+").partition(".")
    digits = whole + fraction
    if not digits.isascii() or not digits.isdigit() or len(text) > _LONGEST_QUANTITY:
        raise ValueError("is not a quantity such as 1G, 500M or 1e9")
    if mark and suffix:
        raise ValueError("has both an exponent and a suffix")
    if suffix in _BINARY:
        return int(digits) << 10 * _BINARY[suffix], 10 ** len(fraction)
    if suffix not in _DECIMAL:
        raise ValueError(f"has an unknown suffix {suffix!r}")
    power = _DECIMAL[suffix] + exponent - len(fraction)
    return int(digits) * 10 ** max(power, 0), 10 ** max(-power, 0)


def _exponent(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > 2:
        raise ValueError("has a malformed exponent")
    return sign * int(digits)


def _of_flannel(path: str) -> tuple[addresses.Subnet, int]:
    """The node's subnet and the MTU (bytes) in the file flanneld wrote.

    Raises OSError, and ValueError with a message for people.
    """
    entries = _entries(path)
    subnet = entries.get("FLANNEL_SUBNET", "")
    mtu = entries.get("FLANNEL_MTU", "")
    if not (mtu.isascii() and mtu.isdigit() and len(mtu) <= 5):
        raise ValueError("has no valid FLANNEL_MTU")
    if not addresses.LEAST_MTU <= int(mtu) <= addresses.MOST_MTU:
        raise ValueError(f"has FLANNEL_MTU={mtu}, not from {addresses.LEAST_MTU} to {addresses.MOST_MTU}")
    try:
        return addresses.parse_interface(subnet)[1], int(mtu)
    except ValueError as error:
        raise ValueError(f"FLANNEL_SUBNET={subnet[:40]} {error}") from error


def _flannel_network(path: str) -> addresses.Subnet | None:
    """The network of all nodes' pods, or None where the file does not tell, or not of one."""
    try:
        return addresses.parse_subnet(_entries(path).get("FLANNEL_NETWORK", ""))
    except (OSError, ValueError):
        return None


def _entries(path: str) -> dict[str, str]:
    """What flannel's subnet.env says."""
    text = files.read(path, _LONGEST).decode("ascii", "replace")
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
