"""Somebody annotates a pod that runs: its node's agent changes what it is promised, or tells who has it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.certificates import openssl_makes
from tests.system.plugin.conftest import GUARANTEE, INGRESS, Node
from tests.system.plugin.runtimes import CACHE, attach, keep
from tests.system.plugin.test_agent import agent
from tests.system.plugin.test_ingress import KEY, change, promised, receiving
from tests.system.plugin.test_rebuild import told
from tests.waiting import until

API = Path(__file__).with_name("api.py")


def test_what_is_annotated_is_promised_or_refused_by_event(node: Node, tmp_path: Path) -> None:
    node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
    node.run("ip", "link", "set", "eth0", "up")
    node.add_pod_namespace("A-1", "B-1")
    certificate, key = tmp_path / "ca.crt", tmp_path / "key.pem"
    openssl_makes(certificate, key, "-addext", "subjectAltName=IP:127.0.0.1")
    (tmp_path / "token").write_text("who-I-am")
    (tmp_path / "secret").write_text(KEY)
    pods = tmp_path / "pods"

    def annotate(**promises: str) -> None:
        names = {"egress": GUARANTEE, "ingress": INGRESS}
        annotations = {names[direction]: rate for direction, rate in promises.items()}
        metadata = {"namespace": "default", "name": "web", "uid": "0a-1b", "annotations": annotations}
        with pods.open("a") as file:
            file.write(json.dumps({"metadata": metadata}) + "\n")

    def egress() -> int | None:
        rate: int | None = told(node)["attachments"][0]["guarantee"]
        return rate

    annotate(ingress="300M")
    options = "--every", "3600", "--account", str(tmp_path), "--key", str(tmp_path / "secret")
    env = "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=6443"
    watching = "--node", "node-1", "--cache", CACHE
    with (
        node.running("/usr/bin/python3", API, "6443", certificate, key, pods) as server,
        agent(node, tmp_path / "log", receiving("1M"), *options, *watching, env=env) as its,
    ):
        assert server.stdout is not None
        assert server.stdout.readline() == "serves\n"
        its.says("takes part in the fabric")
        configuration = receiving("300M")
        arguments = "K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=0a-1b"
        result = node.call("ADD", "A-1", configuration, arguments=arguments)
        keep(node, "A-1", configuration, result)
        annotate(ingress="400M", egress="100M")
        until(lambda: (egress(), promised(node)) == (100_000_000, {"A-1": (400_000_000, 20_000_000)}))
        assert node.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}

        attach(node, "B-1", receiving("300M"))
        assert change(node, "A-1", "egress-guarantee=50M")[0] == 0
        for wanted, words in (
            ("900M", "no room for a guarantee of 900 Mbit/s for what is received"),
            ("much", "'much'"),
        ):
            annotate(ingress=wanted, egress="100M")
            event = json.loads(server.stdout.readline())["event"]
            assert (event["reason"], event["involvedObject"]["uid"]) == ("PromiseRefused", "0a-1b")
            assert event["message"].startswith("what was promised before stays: ")
            assert words in event["message"]
            assert ("held by cluster-a 310" in event["message"]) == (wanted == "900M")
        assert egress() == 50_000_000  # nobody has written that annotation anew
        assert promised(node)["A-1"] == (400_000_000, 20_000_000)
        annotate(ingress="200M", egress="100M")
        until(lambda: promised(node)["A-1"] == (200_000_000, 10_000_000))
