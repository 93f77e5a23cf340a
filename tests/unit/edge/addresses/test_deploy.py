"""What ``kubectl apply -k edge/deploy/addresses`` brings: kinds, rights, and nothing besides."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ruamel.yaml import YAML

from edge.addresses import kinds
from edge.addresses.controller import parse
from edge.http import ANSWER_SECONDS
from edge.webhook import PATH
from testbed import resources

DEPLOY = resources.EDGE / "deploy" / "addresses"


def manifests() -> dict[str, list[dict[str, Any]]]:
    """What the kustomization lists, by kind."""
    found = defaultdict(list)
    for file in YAML(typ="safe").load(DEPLOY / "kustomization.yaml")["resources"]:
        document = YAML(typ="safe").load(DEPLOY / file)
        found[document["kind"]].append(document)
    return found


def test_kustomization_lists_every_manifest() -> None:
    files = [path for part in ("kinds", "manifests") for path in (DEPLOY / part).iterdir()]
    listed = YAML(typ="safe").load(DEPLOY / "kustomization.yaml")["resources"]
    assert sorted(listed) == sorted(str(path.relative_to(DEPLOY)) for path in files)


def test_both_groups_have_the_same_kind_in_their_scopes() -> None:
    ours, vendors = manifests()["CustomResourceDefinition"]
    for definition, group, scope in ((ours, kinds.OURS, "Cluster"), (vendors, kinds.VENDOR, "Namespaced")):
        spec = definition["spec"]
        assert f"{spec.pop('group')}/{spec['versions'][0]['name']}" == group
        assert spec.pop("scope") == scope
        assert spec["names"]["kind"] == kinds.KIND
        assert definition["metadata"]["name"] == f"{spec['names']['plural']}.{group.partition('/')[0]}"
    assert ours["spec"] == vendors["spec"]


def test_the_schema_has_the_bounds_that_the_program_has() -> None:
    (version,) = manifests()["CustomResourceDefinition"][0]["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert {
        number: spec[f"ipv{number}"]["properties"]["perNodeMaskSize"]["maximum"] for number in (4, 6)
    } == kinds.LONGEST
    term = spec["nodeSelector"]["properties"]["nodeSelectorTerms"]["items"]["properties"]
    for field, operators in (("matchExpressions", kinds.OPERATORS), ("matchFields", kinds.FIELD_OPERATORS)):
        assert tuple(term[field]["items"]["properties"]["operator"]["enum"]) == operators


def test_the_controller_may_ask_no_more_than_it_needs() -> None:
    (role,) = manifests()["ClusterRole"]
    assert {
        f"{group}/{resource}": rule["verbs"]
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    } == {
        "/nodes": ["get", "list", "watch", "patch"],
        "/events": ["create", "patch"],
        **{
            f"{kind.partition('/')[0]}/clustercidrconfigs{part}": verbs
            for kind in (kinds.OURS, kinds.VENDOR)
            for part, verbs in (("", ["list", "watch", "patch"]), ("/status", ["patch"]))
        },
        "admissionregistration.k8s.io/validatingwebhookconfigurations": ["get", "patch"],
    }
    (one,) = [rule for rule in role["rules"] if "resourceNames" in rule]
    assert one["apiGroups"] == ["admissionregistration.k8s.io"]
    (account,) = manifests()["ServiceAccount"]
    for binding in manifests()["ClusterRoleBinding"] + manifests()["RoleBinding"]:
        (subject,) = binding["subjects"]
        assert (subject["name"], subject["namespace"]) == (
            account["metadata"]["name"],
            account["metadata"]["namespace"],
        )
    assert account["automountServiceAccountToken"] is False  # whoever else uses it


def test_the_lease_it_asks_for_is_the_one_that_it_may_have() -> None:
    (role,), (pod,) = manifests()["Role"], pods()
    (name,) = [one for rule in role["rules"] for one in rule.get("resourceNames", [])]
    assert f"--lease={role['metadata']['namespace']}/{name}" in pod["containers"][0]["args"]


def test_api_servers_ask_it_about_its_kinds_alone_and_do_without_it() -> None:
    (configuration,), (service,), (role,) = (
        manifests()[kind] for kind in ("ValidatingWebhookConfiguration", "Service", "ClusterRole")
    )
    (pod,) = pods()
    told = parse(pod["containers"][0]["args"])
    (name,) = [one for rule in role["rules"] for one in rule.get("resourceNames", [])]
    assert name == told.webhook == configuration["metadata"]["name"]
    (webhook,) = configuration["webhooks"]
    (rule,) = webhook["rules"]
    assert [f"{group}/{rule['apiVersions'][0]}" for group in rule["apiGroups"]] == [kinds.OURS, kinds.VENDOR]
    assert rule["resources"] == [kinds.PLURAL]  # and so no status
    assert rule["operations"] == ["CREATE", "UPDATE"]
    assert (webhook["failurePolicy"], webhook["sideEffects"]) == ("Ignore", "None")
    # A finalizer is written even where an API server waits for the webhook in vain.
    assert webhook["timeoutSeconds"] < ANSWER_SECONDS
    assert webhook["clientConfig"]["service"] == {
        "namespace": service["metadata"]["namespace"],
        "name": service["metadata"]["name"],
        "path": PATH,
    }
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert [one["targetPort"] for one in service["spec"]["ports"]] == [told.webhook_port]
    (deployment,) = manifests()["Deployment"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]


def test_it_runs_where_no_pod_network_is_and_without_rights_on_the_node() -> None:
    (pod,) = pods()
    assert pod["hostNetwork"] is True
    tolerated = {one["key"]: set(one) for one in pod["tolerations"]}
    assert tolerated["node.kubernetes.io/not-ready"] == {"key", "operator"}  # whatever the effect
    assert {"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"} < set(tolerated)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert "volumes" not in pod
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def pods() -> list[dict[str, Any]]:
    """What the Deployments run."""
    return [one["spec"]["template"]["spec"] for one in manifests()["Deployment"]]
