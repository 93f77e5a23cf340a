"""Decoding what `iptables-save` and `nft -j` say of their chains, for `rules`."""

from __future__ import annotations

from .. import addresses
from ..routing import Block
from . import rules
from .rules import ACCEPT, DROP, GOTO, JUMP, MAYBE, RETURN, Chain, Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .rules import Condition

_TARGETS = {
    "ACCEPT": ACCEPT,
    "DROP": DROP,
    "REJECT": DROP,
    "RETURN": RETURN,
    "QUEUE": MAYBE,
    "NFQUEUE": MAYBE,
}
_PROTOCOL = ("tcp", "6", "all", "0")  # of the packet that is asked about, and of any
_TRANSLATED = {"dnat", "snat"}  # as what goes to a Service is, and no packet that is asked about
_SAY_NOTHING = ("-m", "--comment")
_STATEMENTS = ("counter", "log", "mangle", "ct helper", "notrack")
_SETS_MARKS = (" -j MARK ", " -j CONNMARK ")


def saved(text: str) -> dict[str, Chain]:
    """The chains of a table as `iptables-save -t TABLE` writes them."""
    from shlex import split

    found: dict[str, Chain] = {}
    marks = any(words in text for words in _SETS_MARKS)
    for line in text.splitlines():
        if line.startswith(":"):
            name, policy, *_ = line[1:].split()
            found[name] = Chain({"ACCEPT": ACCEPT, "DROP": DROP}.get(policy, ""))
        elif line.startswith("-A "):
            _, name, *words = split(line)
            rule = _of_words(words, found, marks)
            if rule is not None:
                found[name].rules.append(rule)
    return found


def _of_words(words: list[str], chains: dict[str, Chain], marks: bool) -> Rule | None:
    """A rule, or None if its target decides nothing; `marks` says that some rule sets marks."""
    conditions: list[Condition | None] = []
    while words:
        word = words.pop(0)
        is_negated = word == "!"
        if is_negated:
            word = words.pop(0)
        if word in ("-j", "-g"):
            verdict = _TARGETS.get(words[0])
            if verdict is not None:
                return Rule(conditions, verdict)
            kind = GOTO if word == "-g" else JUMP
            return Rule(conditions, kind, words[0]) if words[0] in chains else None
        if not word.startswith("-"):
            continue  # what belongs to an option that is not known here
        if word in _SAY_NOTHING:
            words.pop(0)
            continue
        known = _OPTIONS.get(word) if word != "--mark" or not marks else None
        condition = known(words.pop(0)) if known else None
        conditions.append(rules.negated(condition) if is_negated else condition)
    return None


def _interface(name: str, wildcard: str) -> Callable[[str], bool]:
    if name.endswith(wildcard):
        return lambda device: device.startswith(name[:-1])
    return lambda device: device == name


def _protocol(name: str) -> Condition:
    return rules.is_constant(name in _PROTOCOL)


def _mark(text: str) -> Condition:
    """Whether a packet without any mark has this one."""
    value, _, mask = text.partition("/")
    return rules.is_constant(int(value, 0) & int(mask or "0xffffffff", 0) == 0)


_OPTIONS: dict[str, Callable[[str], Condition | None]] = {
    "-s": lambda text: rules.is_from([_block(text)]),
    "-d": lambda text: rules.is_to([_block(text)]),
    "-i": lambda text: rules.comes_by(_interface(text, "+")),
    "-o": lambda text: rules.leaves_by(_interface(text, "+")),
    "-p": _protocol,
    "--ctstate": lambda text: rules.is_in_state(text.split(",")),
    "--state": lambda text: rules.is_in_state(text.split(",")),
    "--ctstatus": lambda text: rules.is_constant(not _TRANSLATED.issuperset(text.lower().split(","))),
    "--mark": _mark,
}


def listed(objects: Iterable[dict[str, Any]]) -> tuple[dict[str, Chain], list[str], bool]:
    """The chains of a table as `nft -j list table` writes them, those that hook at `forward`, and whether
    there is a match or a target of iptables among them, of which nft does not tell all.
    """
    objects = list(objects)
    marks = '"mangle"' in str(objects).replace("'", '"')
    chains: dict[str, Chain] = {}
    hooked: list[str] = []
    foreign = False
    for entry in objects:
        if "chain" in entry:
            chain = entry["chain"]
            chains[chain["name"]] = Chain(chain.get("policy", ""))
            if chain.get("hook") == "forward" and chain.get("type") == "filter":
                hooked.append(chain["name"])
        elif "rule" in entry:
            expressions = entry["rule"].get("expr", [])
            foreign = foreign or any("xt" in expression for expression in expressions)
            rule = _of_expressions(expressions, marks)
            if rule is not None and entry["rule"]["chain"] in chains:
                chains[entry["rule"]["chain"]].rules.append(rule)
    return chains, hooked, foreign


def _of_expressions(expressions: list[dict[str, Any]], marks: bool) -> Rule | None:
    conditions: list[Condition | None] = []
    for expression in expressions:
        ((kind, said),) = expression.items()
        if kind in (ACCEPT, DROP, RETURN):
            return Rule(conditions, kind)
        if kind == "reject":
            return Rule(conditions, DROP)
        if kind in (JUMP, GOTO):
            return Rule(conditions, kind, said["target"])
        if kind in ("vmap", "queue"):
            return Rule(conditions, MAYBE)
        if kind == "match":
            conditions.append(_match(said, marks))
        elif kind not in _STATEMENTS and not (kind == "xt" and (said or {}).get("name") == "comment"):
            conditions.append(None)
    return None


def _match(said: dict[str, Any], marks: bool) -> Condition | None:
    left, right, operator = said["left"], said["right"], said.get("op", "==")
    if isinstance(right, dict):
        right = right.get("set", [right])
    values = right if isinstance(right, list) else [right]
    if operator not in ("==", "!=", "in") or not isinstance(left, dict):
        return None
    if "&" in left:
        condition = _of_mark(left["&"][0], values) if not marks else None
    elif "payload" in left:
        condition = _of_header(left["payload"], values)
    else:
        condition = _of_packet(left, values)
    return rules.negated(condition) if operator == "!=" else condition


def _of_mark(left: object, values: list[Any]) -> Condition | None:
    """Of a mark's bits: a packet has none."""
    return rules.is_constant(0 in values) if left == {"meta": {"key": "mark"}} else None


def _of_packet(left: dict[str, Any], values: list[Any]) -> Condition | None:
    """What is known beside its headers."""
    words = [value for value in values if isinstance(value, str) and value[:1] != "@"]
    (kind, said), *_ = left.items()
    key = said.get("key") if isinstance(said, dict) else None
    if len(words) < len(values) or key is None:
        return None
    if kind == "ct":
        known = {
            "state": rules.is_in_state(words),
            "status": rules.is_constant(not _TRANSLATED.issuperset(words)),
        }
        return known.get(key)
    tests = [_interface(word, "*") for word in words]
    if key in ("iifname", "iif"):
        return rules.comes_by(lambda device: any(test(device) for test in tests))
    if key in ("oifname", "oif"):
        return rules.leaves_by(lambda device: any(test(device) for test in tests))
    if key in ("l4proto", "nfproto"):
        return rules.is_constant(any(word in (*_PROTOCOL, "ipv4") for word in words))
    return None


def _of_header(payload: dict[str, Any], values: list[Any]) -> Condition | None:
    family, field = payload.get("protocol"), payload.get("field")
    if family in ("ip6", "icmp", "icmpv6", "udp"):
        return rules.is_constant(False)
    if family != "ip" or field not in ("protocol", "saddr", "daddr"):
        return None
    if field == "protocol":
        return rules.is_constant(any(value in _PROTOCOL for value in values))
    try:
        blocks = [_block(value) for value in values]
    except (KeyError, TypeError, ValueError):
        return None  # a named set, a range, or a name
    return (rules.is_from if field == "saddr" else rules.is_to)(blocks)


def _block(said: Any) -> Block:
    """Addresses such as 10.0.0.0/8, as nft has them too. Raises KeyError, TypeError and ValueError."""
    if isinstance(said, dict):
        said = "{addr}/{len}".format(**said["prefix"])
    address, _, prefix = said.partition("/")
    bits = int(prefix or 32)
    return Block(addresses.parse(address) >> (32 - bits) << (32 - bits), bits)
