"""From one set of entries to another."""

from __future__ import annotations

from bench.studies.backends.probes.membership import removal
from edge.addresses.batches import difference

BEFORE = """\
link add flannel.1 type vxlan id 1
link set flannel.1 up
address add 10.1.1.0/32 dev flannel.1
neighbour add 10.1.2.0 lladdr 0e:01 dev flannel.1 nud permanent
route add 10.1.2.0/24 via 10.1.2.0 dev flannel.1 onlink
neighbour add 10.1.3.0 lladdr 0e:02 dev flannel.1 nud permanent
route add 10.1.3.0/24 via 10.1.3.0 dev flannel.1 onlink
"""


def test_the_same_needs_nothing() -> None:
    assert difference(BEFORE, BEFORE) == ""


def test_what_goes_goes_first_and_what_was_made_last_before_that() -> None:
    after = BEFORE.replace("0e:02", "0e:03")
    assert difference(BEFORE, after) == (
        "neighbour del 10.1.3.0 lladdr 0e:02 dev flannel.1 nud permanent\n"
        "neighbour replace 10.1.3.0 lladdr 0e:03 dev flannel.1 nud permanent\n"
    )
    gone = "".join(BEFORE.splitlines(keepends=True)[:5])
    assert difference(BEFORE, gone) == (
        "route del 10.1.3.0/24 via 10.1.3.0 dev flannel.1 onlink\n"
        "neighbour del 10.1.3.0 lladdr 0e:02 dev flannel.1 nud permanent\n"
    )


def test_there_and_back_are_the_opposite() -> None:
    gone = "".join(BEFORE.splitlines(keepends=True)[:5])
    there, back = difference(BEFORE, gone), difference(gone, BEFORE)
    assert {line.replace(" del ", " replace ") for line in there.splitlines()} == set(back.splitlines())


def test_with_a_device_goes_what_is_on_it() -> None:
    text = BEFORE + "rule add to 10.1.0.0/16 lookup 101 priority 101\n"
    assert removal(text, ["flannel.1"]) == (
        "rule del to 10.1.0.0/16 lookup 101 priority 101\nlink del flannel.1\n"
    )


def test_without_a_device_entries_go_one_by_one() -> None:
    text = "route add 10.1.2.0/24 via 192.168.1.2 dev eth0\nroute add 10.1.3.0/24 via 192.168.1.3 dev eth0\n"
    assert removal(text, []) == (
        "route del 10.1.3.0/24 via 192.168.1.3 dev eth0\nroute del 10.1.2.0/24 via 192.168.1.2 dev eth0\n"
    )
