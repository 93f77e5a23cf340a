"""What chains of packet filters would do with a packet: as far as that can be told from their text.

Each rule is a list of conditions and a verdict. A condition that is none of the few that matter for most
packets (addresses, interfaces, protocol, state of the connection, mark) is `None`: nobody knows whether it
holds. Only decoding and deciding; both from iptables-save and from `nft -j`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..routing import Block

    Condition = Callable[["Packet"], "bool | None"]

ACCEPT, DROP, RETURN, JUMP, GOTO, MAYBE = "accept", "drop", "return", "jump", "goto", "maybe"
_DEEPEST = 16  # as many jumps as nftables allows (NFT_JUMP_STACK_SIZE)


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
