"""What ``ip`` says of links, without what the kernel brings up to date later, by up to a second.

That are the operational state and the flags that follow from it, and a bridge's carrier from its ports'
(net/core/link_watch.c, net/bridge/br_if.c): whoever compares links before and after leaves them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LATER = {"NO-CARRIER", "LOWER_UP", "M-DOWN"}
STATE = r"(UP|DOWN|UNKNOWN|LOWERLAYERDOWN)"


def lasting(flags: Iterable[str]) -> list[str]:
    """Return the flags that somebody has set."""
    return [flag for flag in flags if flag not in LATER]


def without_carrier(text: str) -> str:
    """Return what ``ip link`` or ``ip address`` says, with ``-br`` or ``-o``, without that."""
    text = re.sub(rf"^(\S+) +{STATE} +", r"\1 ", text, flags=re.MULTILINE)
    text = re.sub(rf" state {STATE}\b", "", text)
    return re.sub(r"<([^>]*)>", lambda found: f"<{','.join(lasting(found[1].split(',')))}>", text)
