"""What is signed, and who is let in by it."""

from __future__ import annotations

import base64
import json

from testbed.kubernetes.certificates import Subject, at_server, render_kubeconfig, render_request


def test_a_request_names_user_groups_and_addresses() -> None:
    text = render_request(Subject("system:node:w", ["system:nodes"], ["192.168.56.13", "w"]))
    assert "0.O = system:nodes\nCN = system:node:w\n" in text
    assert "subjectAltName = IP:192.168.56.13, DNS:w\n" in text
    assert "CA:FALSE" in text
    assert "CA:TRUE" in render_request(Subject("authority", authority=True))


def test_a_kubeconfig_has_all_it_needs_and_can_be_pointed_elsewhere() -> None:
    config = json.loads(render_kubeconfig("a", "https://192.168.56.11:6443", "AUTHORITY", "IDENTITY"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"AUTHORITY"
    assert base64.b64decode(user["client-key-data"]) == b"IDENTITY"
    moved = json.loads(at_server(json.dumps(config), "https://127.0.0.1:40000"))
    assert moved["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:40000"
    assert moved["users"] == config["users"]
