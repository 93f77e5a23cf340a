from __future__ import annotations

import pytest
from concorde.node import observe

from tests.unit.plugin.node.examples import TC_QDISCS


@pytest.mark.parametrize(
    ("shown", "root"),
    [
        ("", "default"),
        ('[{"kind":"fq_codel","handle":"0:","root":true,"options":{}}]', "default"),
        ('[{"kind":"mq","handle":"0:","root":true},{"kind":"fq","handle":"0:","parent":":1"}]', "default"),
        ('[{"kind":"fq_codel","handle":"8001:","root":true,"options":{}}]', "fq_codel 8001:"),
        ('[{"kind":"htb","handle":"c0de:","root":true,"options":{"default":"0x1"}}]', "htb c0de:"),
        (TC_QDISCS, "ours"),
    ],
)
def test_whose_the_root_qdisc_is(shown: str, root: str) -> None:
    state = observe.State()
    observe.read_qdiscs(state, shown)
    assert state.root == root
