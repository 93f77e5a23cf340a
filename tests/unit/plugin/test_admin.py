from __future__ import annotations

import pytest
from concorde import admin


def parsed(*arguments: str) -> dict[str, object]:
    """What differs from a command without options."""
    plain = vars(admin.Asked(arguments[0]))
    return {key: value for key, value in vars(admin.parse(list(arguments))).items() if value != plain[key]}


def test_the_command_line() -> None:
    assert vars(admin.parse(["ledger"]))["state"] == "/run/concorde"
    assert parsed("ledger", "--json", "--state-dir=/x") == {"as_json": True, "state": "/x"}
    assert parsed("reconcile", "--state-dir", "/x") == {"state": "/x"}
    arguments = ["rebuild", "--cache", "/a", "--state-dir=/x", "--cache=/b"]
    assert parsed(*arguments) == {"caches": ["/a", "/b"], "state": "/x"}
    assert parsed("agent", "--listen=[::1]:9", "--every", "5") == {"listen": ("::1", 9), "every": 5}
    assert parsed("agent", "--node=n.1", "--cache", "/a") == {"node": "n.1", "caches": ["/a"]}
    assert parsed("agent", "--account", "/proc/self/fd/3") == {"account": "/proc/self/fd/3"}
    assert parsed("metrics", "--output", "/d/x.prom") == {"output": "/d/x.prom"}
    wanted = admin.parse(["change", "a/b", "egress-guarantee.net1=2G", "ingress-guarantee.net1=1G"]).wanted
    assert wanted is not None
    assert vars(wanted) == {
        "pod": "a/b", "interface": "net1", "promises": {"egress": "2G", "ingress": "1G"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["leger"], "unknown command 'leger'"),
        (["ledger", "--output", "/x"], "unknown option '--output' of ledger"),
        (["examine", "--state-dir=/x"], "unknown option '--state-dir=/x' of examine"),
        (["ledger", "--json=yes"], "unknown option '--json=yes' of ledger"),
        (["metrics", "--output"], "option '--output' requires a value"),
        (["metrics", "--output=x.prom"], "'x.prom' is not a plain absolute path"),
        (
            ["agent", "--listen", "9725"],
            "'9725' is not an address and port of this node, such as 127.0.0.1:9725",
        ),
        (["agent", "--every", "0"], "--every must be an integer from 1 to 3600 (seconds), not '0'"),
        (["agent", "--node", "a&b"], "'a&b' is not a node's name"),
        (["rebuild", "--cache", "../x"], "'../x' is not a plain absolute path"),
        (["change"], "change requires a pod and egress-guarantee=RATE or ingress-guarantee=RATE"),
        (["change", "a/b"], "change requires a pod and egress-guarantee=RATE or ingress-guarantee=RATE"),
        (
            ["change", "a/b", "egress=1G"],
            "'egress=1G' is not egress-guarantee=RATE or ingress-guarantee=RATE, such as egress-guarantee=2G",
        ),
        (
            ["change", "a/b", "ingress-guarantee=1G", "ingress-guarantee=2G"],
            "ingress-guarantee is given twice",
        ),
        (
            ["change", "a/b", "ingress-guarantee.net1=1G", "egress-guarantee.net2=2G"],
            "egress-guarantee.net2: one call changes what one interface is promised",
        ),
        (
            ["change", "a/b", "egress-guarantee=1P"],
            "egress-guarantee: '1P' is outside 1k to 1T (bits per second)",
        ),
        (["change", "a/b", "egress-guarantee=1G", "--json"], "unknown option '--json' of change"),
    ],
)
def test_a_mistake_is_named(arguments: list[str], words: str) -> None:
    with pytest.raises(admin.UsageError) as caught:
        admin.parse(arguments)
    assert str(caught.value) == words
