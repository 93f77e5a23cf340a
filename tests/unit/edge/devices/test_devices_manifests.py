"""What ``kubectl apply -k edge/deploy/devices`` brings: kinds, one program, its rights, and no more."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from edge.devices import definitions, operator
from edge.devices.picture import CHOSEN, KINDS
from edge.devices.rendering import Settings
from edge.webhook import PATH
from testbed import resources
from testbed.supplies import devices, images

DEPLOY = resources.EDGE / "deploy" / "devices"
SPACE = "concorde-devices"
FILES = YAML(typ="safe").load(DEPLOY / "kustomization.yaml")["resources"]
ALL = [YAML(typ="safe").load(DEPLOY / file) for file in FILES]
BY_KIND = {(one["kind"], one["metadata"]["name"]): one for one in ALL}


def test_kustomization_lists_every_manifest() -> None:
    files = [
        str(path.relative_to(DEPLOY)) for at in ("kinds", "manifests") for path in (DEPLOY / at).iterdir()
    ]
    assert sorted(FILES) == sorted(files)


def test_the_program_understands_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    (container,) = BY_KIND["Deployment", "devices"]["spec"]["template"]["spec"]["containers"]
    for key in ("HOST", "PORT"):  # as kubelet says them
        monkeypatch.setenv(f"KUBERNETES_SERVICE_{key}", "443")
    program, *arguments = container["args"]
    told = operator.parse(arguments)
    assert program == "devices"
    assert container["image"] == devices.IMAGE
    assert told.settings == Settings(images.PAUSE, devices.RELAY)
    assert (told.lease, told.webhook, told.strict) == (f"{SPACE}/devices", SPACE, True)
    (port,) = BY_KIND["Service", "devices"]["spec"]["ports"]
    assert port["targetPort"] == told.webhook_port
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_each_node_has_definitions_where_the_plugin_looks_for_them() -> None:
    spec = BY_KIND["DaemonSet", "networks"]["spec"]["template"]["spec"]
    (container,), (volume,) = spec["containers"], spec["volumes"]
    (mount,) = container["volumeMounts"]
    assert (container["image"], container["args"][0]) == (devices.IMAGE, "networks")
    told = definitions.parse(container["args"][1:])
    assert (volume["hostPath"]["path"], told.root) == ("/", mount["mountPath"])
    assert told.program == container["env"][0]["value"]
    assert all(
        rule["verbs"] == ["list", "watch"] for rule in BY_KIND["ClusterRole", f"{SPACE}-networks"]["rules"]
    )


def test_servers_ask_where_it_answers_and_go_on_without() -> None:
    (hook,) = BY_KIND["ValidatingWebhookConfiguration", SPACE]["webhooks"]
    assert (hook["clientConfig"]["service"]["path"], hook["failurePolicy"]) == (PATH, "Ignore")


def test_what_it_follows_it_may_list_and_watch() -> None:
    rules = BY_KIND["ClusterRole", SPACE]["rules"]
    may = {resource: rule["verbs"] for rule in rules for resource in rule["resources"]}
    assert all({"get", "list", "watch"} <= set(may[kind.path.rpartition("/")[2]]) for kind in KINDS)
    assert all({"list", "watch"} <= set(may[kind.path.rpartition("/")[2]]) for kind in CHOSEN)
    writes = {one for one, verbs in may.items() if {"create", "patch", "update", "delete"} & set(verbs)}
    assert writes == {
        "connections/finalizers", "connections/status", "deployments", "devices/status", "events", "pods",
        "services",
        "validatingwebhookconfigurations",
    }  # fmt: skip


def schema(name: str) -> Any:
    (version,) = BY_KIND["CustomResourceDefinition", f"{name}.edge-operator.k8s.dvojak.cz"]["spec"][
        "versions"
    ]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]


def test_the_kinds_have_the_thesis_fields_and_ours_are_optional() -> None:
    device, connection = schema("devices"), schema("connections")
    assert set(device["required"]) == {"nodeName", "ipAddress", "components"}
    assert set(device["properties"]) - set(device["required"]) == {"up", "nodeNames"}
    assert set(connection["required"]) == {"deviceName", "networkName", "componentNames"}
    assert set(connection["properties"]) - set(connection["required"]) == {"mode", "replicas", "guarantee"}
