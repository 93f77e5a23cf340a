"""What chains of packet filters would do with a packet: as far as that can be told from their text.

Each rule is a list of conditions and a verdict. A condition that is none of the few that matter for most
packets (addresses, interfaces, protocol, state of the connection, mark) is `None`: nobody knows whether it
holds. Only decoding and deciding; both from iptables-save and from `nft -j`.
"""

from __future__ import annotations

from .. import addresses
from ..routing import Block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Condition = Callable[["Packet"], "bool | None"]

ACCEPT, DROP, RETURN, JUMP, GOTO, MAYBE = "accept", "drop", "return", "jump", "goto", "maybe"
_DEEPEST = 16  # as many jumps as nftables allows (NFT_JUMP_STACK_SIZE)
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


class Packet:
    """The first packet of a connection by TCP, or an answer to one, as far as it is known.

    `source` and `destination` are blocks of addresses, None for any: one is `here`, and the other elsewhere.
    `came` and `leaves` are the interfaces that it may come in or leave by, empty for any.
    """

    def __init__(
        self,
        here: Block,
        source: Block | None,
        destination: Block | None,
        came: Iterable[str],
        leaves: Iterable[str],
        state: str,
    ) -> None:
        self.here = here
        self.source = source
        self.destination = destination
        self.came = frozenset(came)
        self.leaves = frozenset(leaves)
        self.state = state


class Rule:
    """Conditions that must all hold, and what then becomes of the packet: a verdict, and a chain's name."""

    def __init__(self, conditions: list[Condition | None], verdict: str, target: str = "") -> None:
        self.conditions = conditions
        self.verdict = verdict
        self.target = target

    def holds(self, packet: Packet) -> bool | None:
        """Whether it is a rule for that packet; None if nobody knows."""
        answers = [condition(packet) if condition else None for condition in self.conditions]
        return False if False in answers else None if None in answers else True


class Chain:
    """The rules of a chain; of one that hooks, what becomes of who reaches its end."""

    def __init__(self, policy: str = "") -> None:
        self.policy = policy
        self.rules: list[Rule] = []


def drops(chains: dict[str, Chain], base: str, packet: Packet) -> str:
    """Which chain of a table drops the packet for certain, with why; empty if it may pass."""
    verdict, where = _walk(chains, base, packet, 0)
    if verdict == DROP:
        return f"a rule of {where}"
    if verdict == RETURN and chains[base].policy == DROP:
        return f"the policy of {base}"
    return ""


def _walk(chains: dict[str, Chain], name: str, packet: Packet, depth: int) -> tuple[str, str]:
    """The verdict of a chain: RETURN at its end, MAYBE where somebody may have accepted it."""
    if name not in chains or depth > _DEEPEST:
        return MAYBE, name
    returned = False  # nobody knows whether it has left this chain already
    for rule in chains[name].rules:
        holds = rule.holds(packet)
        if holds is False:
            continue
        verdict, where = rule.verdict, name
        if verdict in (JUMP, GOTO):
            verdict, where = _walk(chains, rule.target, packet, depth + 1)
            if verdict == RETURN and rule.verdict == JUMP:
                continue
        if verdict in (ACCEPT, MAYBE):
            return (verdict if holds and not returned else MAYBE), where
        if verdict == RETURN:
            returned = True
        if holds:
            return (MAYBE if returned and verdict == DROP else verdict), where
    return RETURN, name


def comes_by(test: Callable[[str], bool]) -> Condition:
    """Whether it came in by such an interface."""
    return lambda packet: _of_all(map(test, packet.came))


def leaves_by(test: Callable[[str], bool]) -> Condition:
    """Whether it leaves by such an interface."""
    return lambda packet: _of_all(map(test, packet.leaves))


def is_from(blocks: list[Block]) -> Condition:
    """Whether its source is among these."""
    return lambda packet: _within(packet.source, packet, blocks)


def is_to(blocks: list[Block]) -> Condition:
    """Whether its destination is among these."""
    return lambda packet: _within(packet.destination, packet, blocks)


def is_in_state(states: Iterable[str]) -> Condition:
    """Whether its connection is in one of these states."""
    lower = {state.lower() for state in states}
    return lambda packet: packet.state in lower


def is_constant(answer: bool) -> Condition:
    """What is the same for every packet that is asked about."""
    return lambda packet: answer


def negated(condition: Condition | None) -> Condition | None:
    """The contrary."""
    if condition is None:
        return None

    def contrary(packet: Packet) -> bool | None:
        answer = condition(packet)
        return None if answer is None else not answer

    return contrary


def _of_all(answers: Iterator[bool]) -> bool | None:
    """What all say alike; None where they differ, or nobody says anything."""
    found = set(answers)
    return found.pop() if len(found) == 1 else None


def _within(asked: Block | None, packet: Packet, blocks: list[Block]) -> bool | None:
    if asked is not packet.here:  # the end that is elsewhere
        blocks = [block for block in blocks if not packet.here.holds(block)]
    if asked is None:
        return None if blocks and all(block.prefix for block in blocks) else bool(blocks)
    if any(block.holds(asked) for block in blocks):
        return True
    return None if any(asked.holds(block) for block in blocks) else False


def saved(text: str) -> dict[str, Chain]:
    """The chains of a table as `iptables-save -t TABLE` writes them."""
    from shlex import split

    found: dict[str, Chain] = {}
    marks = any(option in text for option in _SETS_MARKS)
    for line in text.splitlines():
        if line.startswith(":"):
            name, policy, *_ = line[1:].split()
            found[name] = Chain({"ACCEPT": ACCEPT, "DROP": DROP}.get(policy, ""))
        elif line.startswith("-A "):
            _, name, *argv = split(line)
            rule = _of_argv(argv, found, marks)
            if rule is not None:
                found[name].rules.append(rule)
    return found


def _of_argv(argv: list[str], chains: dict[str, Chain], marks: bool) -> Rule | None:
    """A rule, or None if its target decides nothing; `marks` says that some rule sets marks."""
    conditions: list[Condition | None] = []
    while argv:
        option = argv.pop(0)
        is_negated = option == "!"
        if is_negated:
            option = argv.pop(0)
        if option in ("-j", "-g"):
            verdict = _TARGETS.get(argv[0])
            if verdict is not None:
                return Rule(conditions, verdict)
            kind = GOTO if option == "-g" else JUMP
            return Rule(conditions, kind, argv[0]) if argv[0] in chains else None
        if not option.startswith("-"):
            continue  # what belongs to an option that is not known here
        if option in _SAY_NOTHING:
            argv.pop(0)
            continue
        known = _OPTIONS.get(option) if option != "--mark" or not marks else None
        condition = known(argv.pop(0)) if known else None
        conditions.append(negated(condition) if is_negated else condition)
    return None


def _interface(name: str, wildcard: str) -> Callable[[str], bool]:
    if name.endswith(wildcard):
        return lambda device: device.startswith(name[:-1])
    return lambda device: device == name


def _mark(text: str) -> Condition:
    """Whether a packet without any mark has this one."""
    value, _, mask = text.partition("/")
    return is_constant(int(value, 0) & int(mask or "0xffffffff", 0) == 0)


_OPTIONS: dict[str, Callable[[str], Condition | None]] = {
    "-s": lambda text: is_from([_block(text)]),
    "-d": lambda text: is_to([_block(text)]),
    "-i": lambda text: comes_by(_interface(text, "+")),
    "-o": lambda text: leaves_by(_interface(text, "+")),
    "-p": lambda text: is_constant(text in _PROTOCOL),
    "--ctstate": lambda text: is_in_state(text.split(",")),
    "--state": lambda text: is_in_state(text.split(",")),
    "--ctstatus": lambda text: is_constant(not _TRANSLATED.issuperset(text.lower().split(","))),
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
    return negated(condition) if operator == "!=" else condition


def _of_mark(left: object, values: list[Any]) -> Condition | None:
    """Of a mark's bits: a packet has none."""
    return is_constant(0 in values) if left == {"meta": {"key": "mark"}} else None


def _of_packet(left: dict[str, Any], values: list[Any]) -> Condition | None:
    """What is known beside its headers."""
    texts = [value for value in values if isinstance(value, str) and value[:1] != "@"]
    (kind, said), *_ = left.items()
    key = said.get("key") if isinstance(said, dict) else None
    if len(texts) < len(values) or key is None:
        return None
    if kind == "ct":
        known = {
            "state": is_in_state(texts),
            "status": is_constant(not _TRANSLATED.issuperset(texts)),
        }
        return known.get(key)
    tests = [_interface(text, "*") for text in texts]
    if key in ("iifname", "iif"):
        return comes_by(lambda device: any(test(device) for test in tests))
    if key in ("oifname", "oif"):
        return leaves_by(lambda device: any(test(device) for test in tests))
    if key in ("l4proto", "nfproto"):
        return is_constant(any(text in (*_PROTOCOL, "ipv4") for text in texts))
    return None


def _of_header(payload: dict[str, Any], values: list[Any]) -> Condition | None:
    family, field = payload.get("protocol"), payload.get("field")
    if family in ("ip6", "icmp", "icmpv6", "udp"):
        return is_constant(False)
    if family != "ip" or field not in ("protocol", "saddr", "daddr"):
        return None
    if field == "protocol":
        return is_constant(any(value in _PROTOCOL for value in values))
    try:
        blocks = [_block(value) for value in values]
    except (KeyError, TypeError, ValueError):
        return None  # a named set, a range, or a name
    return (is_from if field == "saddr" else is_to)(blocks)


def _block(said: Any) -> Block:
    """Addresses such as 10.0.0.0/8, as nft has them too. Raises KeyError, TypeError and ValueError."""
    if isinstance(said, dict):
        said = "{addr}/{len}".format(**said["prefix"])
    address, _, prefix = said.partition("/")
    bits = int(prefix or 32)
    return Block(addresses.parse(address) >> (32 - bits) << (32 - bits), bits)
