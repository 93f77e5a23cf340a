"""What several tests of the plugin begin with."""

from __future__ import annotations

from typing import Any

from concorde import addresses, guarantees
from concorde.leases import Link
from hypothesis import strategies as st

SUBNET = addresses.parse_subnet("172.16.1.0/24")
LINK = Link("eth0", 1450, addresses.parse("172.16.1.2"), SUBNET, "cni-a", "veth0123456789a")
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"


def annotated(**annotations: object) -> dict[str, Any]:
    names = {
        "guarantee": guarantees.GUARANTEE,
        "answers": guarantees.ANSWERS,
        "ingress": guarantees.INGRESS,
        "ceiling": guarantees.CEILING,
    }
    return {"runtimeConfig": {ANNOTATIONS: {names[key]: value for key, value in annotations.items()}}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
