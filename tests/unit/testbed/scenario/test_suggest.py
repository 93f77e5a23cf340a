"""Which field comes nearest to one that there is none of."""

from __future__ import annotations

import pytest

from testbed.scenario import load
from tests.paths import ROOT

CONTMEC = ROOT / "scenarios" / "contmec.yaml"


@pytest.mark.parametrize(
    ("override", "meant"),
    [
        ("flows.0.duration=3", r"flows\.0: no such field; did you mean flows\[0\]\.duration\?"),
        (
            "flows[0].durations=3",
            r"flows\[0\]\.durations: no such field; did you mean flows\[0\]\.duration\?",
        ),
        ("measurment.interval=1", r"did you mean measurement\?"),
        ("underlay.rates=1G", r"did you mean underlay\.rate\?"),
        ("pods.A-1.garantee=1G", r"did you mean pods\.A-1\.guarantee\?"),
        ("flows.first.duration=3", r"give an index, as in flows\[0\]"),
    ],
)
def test_what_was_meant_is_said(override: str, meant: str) -> None:
    with pytest.raises(LookupError, match=meant):
        load(CONTMEC, [override])


def test_nothing_is_said_to_be_near_that_is_not() -> None:
    with pytest.raises(LookupError) as caught:
        load(CONTMEC, ["zzz=1"])
    assert "did you mean" not in str(caught.value)
