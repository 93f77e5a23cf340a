"""What a table of nftables is made of, for annotations: no call loads this."""

from __future__ import annotations

Element = tuple[str, str, str]  # family, set, and the element as nft writes it
Rule = tuple[str, str]  # as nft writes it, and what it is for
