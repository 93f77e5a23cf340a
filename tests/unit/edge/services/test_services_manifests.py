"""What ``kubectl apply -k edge/deploy/services`` brings: two programs, settings, rights, and no more."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ruamel.yaml import YAML

from edge.services import ending, proxy, publisher, telling
from testbed import resources
from testbed.supplies import services

DEPLOY = resources.EDGE / "deploy" / "services"
SPACE = "concorde-services"
LOADED = YAML(typ="safe").load(DEPLOY / "kustomization.yaml")
ALL = [YAML(typ="safe").load(DEPLOY / file) for file in LOADED["resources"]]
BY_KIND = {(one["kind"], one["metadata"]["name"]): one for one in ALL}


def pod(kind: str, name: str) -> Any:
    return BY_KIND[kind, name]["spec"]["template"]["spec"]


def told(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How a program is started with the settings that are there."""
    (container,) = pod(kind, name)["containers"]
    assert (container["image"], pod(kind, name)["serviceAccountName"]) == (services.IMAGE, name)
    settings = dict(text.split("=", 1) for text in LOADED["configMapGenerator"][0]["literals"])
    values = {"NODE": "worker-01", "POD": "proxy-x"}
    for one in container["env"]:
        key = one["valueFrom"].get("configMapKeyRef", {}).get("key")
        if key in settings:
            values[one["name"]] = settings[key]
    for key in ("HOST", "PORT"):  # as kubelet says them
        monkeypatch.setenv(f"KUBERNETES_SERVICE_{key}", "443")
    return [re.sub(r"\$\((\w+)\)", lambda found: values[found[1]], one) for one in container["args"]]


def test_kustomization_lists_every_manifest() -> None:
    files = [str(path.relative_to(DEPLOY)) for path in (DEPLOY / "manifests").iterdir()]
    assert sorted(LOADED["resources"]) == sorted(files)


def test_programs_understand_what_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    program, *arguments = told("DaemonSet", "proxy", monkeypatch)
    one = proxy.parse(arguments)
    assert (program, one.cluster, one.node) == ("services-proxy", "kubernetes", "worker-01")
    assert one.daemon_set == ending.daemon_set(f"{SPACE}/proxy")
    assert one.pod == f"/api/v1/namespaces/{SPACE}/pods/proxy-x"
    assert pod("DaemonSet", "proxy")["readinessGates"] == [{"conditionType": telling.GATE}]
    program, *arguments = told("Deployment", "hints", monkeypatch)
    other = publisher.parse(arguments)
    assert (program, other.lease, other.delays) == ("hints", f"{SPACE}/hints", {})
    assert str(one.services) == str(other.services) == "10.96.0.0/12"


def test_they_may_ask_no_more_than_they_need() -> None:
    read, write = ["list", "watch"], ["create", "patch"]
    common = {"services": read, "nodes": read, "events": write}
    expected = {
        "proxy": ({**common, "endpointslices": read}, {"daemonsets": ["get"], "pods/status": ["patch"]}),
        "hints": ({**common, "endpointslices": [*read, "patch"]}, {"leases": ["get", "update"]}),
    }
    for name, (rights, own) in expected.items():
        wide, narrow = BY_KIND["ClusterRole", f"{SPACE}-{name}"], BY_KIND["Role", name]
        assert {kind: rule["verbs"] for rule in wide["rules"] for kind in rule["resources"]} == rights
        assert {kind: rule["verbs"] for rule in narrow["rules"] for kind in rule["resources"]} == own
        named = {kind for rule in narrow["rules"] if "resourceNames" in rule for kind in rule["resources"]}
        assert named == own.keys() - {"pods/status"}  # a pod's name is not known before
        for kind, of in (("ClusterRoleBinding", f"{SPACE}-{name}"), ("RoleBinding", name)):
            binding = BY_KIND[kind, of]
            assert binding["roleRef"]["name"] == of
            assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": SPACE}]


def test_the_proxy_alone_may_change_its_node() -> None:
    capabilities = {}
    for kind, name in (("DaemonSet", "proxy"), ("Deployment", "hints")):
        (container,) = pod(kind, name)["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        capabilities[name] = container["securityContext"]["capabilities"]
    assert capabilities == {"proxy": {"drop": ["ALL"], "add": ["NET_ADMIN"]}, "hints": {"drop": ["ALL"]}}
