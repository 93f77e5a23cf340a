from __future__ import annotations

from concorde.node import offloads


def test_what_ip_prints_of_vteps_is_read() -> None:
    shown = '[{},{"ifname":"flannel.1","gso_max_segs":65535},{"ifname":"vx","gso_max_segs":1}]'
    assert offloads.read(shown) == {"flannel.1": 65535, "vx": 1}
    assert offloads.read("") == {}
    assert offloads.change("flannel.1") == "link set dev flannel.1 gso_max_segs 1\n"
