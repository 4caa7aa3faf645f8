"""All that is printed, as a whole: what goes with what, and that it stays the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from enbloc import __version__
from enbloc.api.meta import Obj
from enbloc.gangs.own_annotations import OWN_ANNOTATIONS
from enbloc.install import Settings, manifests
from enbloc.install.rights import COMPONENTS, LEADS
from enbloc.scenario.documents import read_documents

ENBLOC = [sys.executable, "-c", "from enbloc.cli.main import main; main()"]


def printed(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*ENBLOC, "install", *arguments], capture_output=True, text=True, timeout=120)


def found(kind: str, **settings: Any) -> dict[str, Obj]:
    objects = manifests(Settings("actions: allocate\n", **settings))
    return {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == kind}


def test_the_command_prints_the_manifests_and_the_same_each_time(tmp_path: Path) -> None:
    first, second = printed(), printed()
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    file = tmp_path / "install.yaml"
    file.write_text(first.stdout)
    documents = [document.value for document in read_documents([str(file)])]
    assert documents == list(yaml.safe_load_all(first.stdout)), "one reader of YAML sees what the other sees"
    (config,) = (one["data"]["enbloc.yaml"] for one in documents if one["kind"] == "ConfigMap")
    assert documents == json.loads(json.dumps(manifests(Settings(config))))
    assert "&id" not in first.stdout


def test_options_are_obeyed() -> None:
    text = printed("--namespace", "batch", "--image", "example.com/enbloc:9", "--replicas", "3").stdout
    objects = list(yaml.safe_load_all(text))
    assert {one["metadata"].get("namespace", "batch") for one in objects} == {"batch"}
    for one in objects:
        if one["kind"] == "Deployment":
            assert one["spec"]["replicas"] == 3
            assert one["spec"]["template"]["spec"]["containers"][0]["image"] == "example.com/enbloc:9"
    assert "enbloc-system.svc" not in text


def test_an_image_is_named_by_its_digest() -> None:
    image = f"example.com/enbloc@sha256:{'0123456789abcdef' * 4}"
    for one in yaml.safe_load_all(printed("--image", image).stdout):
        if one["kind"] == "Deployment":
            assert one["spec"]["template"]["spec"]["containers"][0]["image"] == image


def test_network_policies_close_all_ports_but_those_that_are_used() -> None:
    policies = found("NetworkPolicy")
    assert policies.keys() == found("Deployment").keys()
    for name, deployment in found("Deployment").items():
        spec = policies[name]["spec"]
        assert spec["podSelector"] == deployment["spec"]["selector"]
        assert spec["policyTypes"] == ["Ingress"]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        opened = {port["port"] for rule in spec["ingress"] for port in rule["ports"]}
        assert opened == {port["containerPort"] for port in container["ports"]}
        metrics = spec["ingress"][0]
        assert metrics["from"] == [{"namespaceSelector": {"matchLabels": {"enbloc.dev/scrapes-metrics": "true"}}}]


def test_w1_only_the_api_servers_reach_the_webhook_where_their_addresses_are_given() -> None:
    spec = found("NetworkPolicy", api_servers=("10.0.0.5/32", "fd00::5/128"))["enbloc-webhook"]["spec"]
    (reviews,) = (rule for rule in spec["ingress"] if rule["ports"] == [{"port": 8443, "protocol": "TCP"}])
    assert reviews["from"] == [{"ipBlock": {"cidr": cidr}} for cidr in ("10.0.0.5/32", "fd00::5/128")]


def test_policies_narrow_what_rbac_cannot() -> None:
    policies, bindings = found("ValidatingAdmissionPolicy"), found("ValidatingAdmissionPolicyBinding")
    assert policies.keys() == bindings.keys() == {"enbloc-scheduler-pods", "enbloc-records", "enbloc-priority"}
    for name, binding in bindings.items():
        assert binding["spec"] == {"policyName": name, "validationActions": ["Deny"]}
        assert policies[name]["spec"]["failurePolicy"] == "Fail"
    (condition,) = policies["enbloc-scheduler-pods"]["spec"]["matchConditions"]
    assert "'system:serviceaccount:enbloc-system:enbloc-scheduler'" in condition["expression"]
    assert "enbloc-scheduler" in found("ServiceAccount")


def test_a_config_file_is_installed(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("admission: {minAvailable: relaxed}\n")
    (config,) = (one for one in yaml.safe_load_all(printed("--config", str(file)).stdout) if one["kind"] == "ConfigMap")
    assert yaml.safe_load(config["data"]["enbloc.yaml"])["admission"] == {"minAvailable": "relaxed"}


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--namespace", "Not A Name"], "--namespace"),
        (["--replicas", "0"], "--replicas"),
        (["--replicas", "many"], "replicas"),
        (["--image", ""], "--image"),
        (["--image", "two words"], "--image"),
        (["--image", "enbloc@sha256:abc"], "digest"),
        (["--api-server-cidr", "10.0.0.5/33"], "--api-server-cidr"),
        (["--config", "/nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_bad_options_are_reported_in_a_line(arguments: list[str], word: str) -> None:
    done = printed(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_no_host_of_a_registry_is_named() -> None:
    for deployment in found("Deployment").values():
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"] == f"enbloc:{__version__}"


def test_no_custom_object_is_printed() -> None:
    """kubectl does not know their kinds yet when it reads them."""
    for obj in manifests(Settings("")):
        assert "volcano.sh" not in obj["apiVersion"]
        assert "arbitrator" not in obj["apiVersion"]


def test_names_are_taken_once() -> None:
    names = [
        (obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]) for obj in manifests(Settings(""))
    ]
    assert len(names) == len(set(names))


def test_the_namespace_asks_for_restricted_pods_and_gets_them() -> None:
    (namespace,) = found("Namespace").values()
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for deployment in found("Deployment").values():
        pod = deployment["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert {next(iter(set(volume) - {"name"})) for volume in pod["volumes"]} == {"configMap"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["readOnlyRootFilesystem"] is True
            assert container["resources"]["requests"].keys() >= {"cpu", "memory"}
            assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
            assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_everything_that_selects_pods_finds_those_of_its_component() -> None:
    deployments, accounts = found("Deployment"), found("ServiceAccount")
    assert deployments.keys() == accounts.keys() == {f"enbloc-{component}" for component in COMPONENTS}
    for name, deployment in deployments.items():
        labels = deployment["spec"]["template"]["metadata"]["labels"].items()
        selectors = [
            deployment["spec"]["selector"]["matchLabels"],
            found("Service")[name]["spec"]["selector"],
            found("PodDisruptionBudget")[name]["spec"]["selector"]["matchLabels"],
            *(
                spread["labelSelector"]["matchLabels"]
                for spread in deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
            ),
        ]
        for selector in selectors:
            assert selector.items() <= labels
            others = [one for other, one in deployments.items() if other != name]
            for other in others:
                assert not selector.items() <= other["spec"]["template"]["metadata"]["labels"].items()
        assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == name
        arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        assert ("--leader-elect" in arguments) == (name.removeprefix("enbloc-") in LEADS)


def test_ports_by_name_exist() -> None:
    for name, service in found("Service").items():
        (container,) = found("Deployment")[name]["spec"]["template"]["spec"]["containers"]
        ports = {port["name"] for port in container["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] in ports


def test_replicas_agree_by_a_lease_that_they_may_write() -> None:
    roles = found("Role")
    for component in LEADS:
        name = f"enbloc-{component}"
        (container,) = found("Deployment")[name]["spec"]["template"]["spec"]["containers"]
        (lease,) = (one.partition("=")[2] for one in container["args"] if one.startswith("--lease-name="))
        allowed = {
            (lease_name, verb)
            for rule in roles[name]["rules"]
            if rule["resources"] == ["leases"]
            for lease_name in rule.get("resourceNames", ["*"])
            for verb in rule["verbs"]
        }
        assert allowed == {("*", "create"), (lease, "get"), (lease, "patch")}


def test_another_config_makes_other_pods() -> None:
    def note(config: str) -> str:
        (scheduler,) = (
            one for one in manifests(Settings(config)) if one["metadata"]["name"] == "enbloc-scheduler"
            and one["kind"] == "Deployment"
        )  # fmt: skip
        return str(scheduler["spec"]["template"]["metadata"]["annotations"])

    assert note("a: 1") != note("a: 2")


def test_webhooks_fail_closed_for_our_kinds() -> None:
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        hook = found(kind)["enbloc"]["webhooks"][0]
        assert hook["failurePolicy"] == "Fail"
        assert "caBundle" not in hook["clientConfig"], "the webhook's own; applying again must leave it"
        service = hook["clientConfig"]["service"]
        assert service["name"] in found("Service")
        groups = {group for rule in hook["rules"] for group in rule["apiGroups"]}
        assert groups == {"batch.volcano.sh", "scheduling.volcano.sh", "arbitrator.incubator.k8s.io"}
        assert all("/" not in resource for rule in hook["rules"] for resource in rule["resources"])
        assert "*" not in json.dumps(hook["rules"])
    (mutating, _) = found("MutatingWebhookConfiguration")["enbloc"]["webhooks"]
    assert all("DELETE" not in rule["operations"] for rule in mutating["rules"])


def test_s2_pods_with_our_annotations_are_stripped_if_the_webhook_answers() -> None:
    (_, guarding) = found("MutatingWebhookConfiguration")["enbloc"]["webhooks"]
    assert (guarding["failurePolicy"], guarding["timeoutSeconds"], guarding["sideEffects"]) == ("Ignore", 2, "None")
    assert guarding["rules"][0]["resources"] == ["pods"]
    assert guarding["rules"][0]["operations"] == ["CREATE"]
    others, records = (one["expression"] for one in guarding["matchConditions"])
    assert "'system:serviceaccounts:enbloc-system'" in others
    assert all(f"'{key}'" in records for key in OWN_ANNOTATIONS)
    (policy,) = found("ValidatingAdmissionPolicy")["enbloc-records"]["spec"]["validations"]
    assert all(f"'{key}'" in policy["expression"] for key in OWN_ANNOTATIONS)


def test_no_webhook_blocks_kube_system() -> None:
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        for hook in found(kind)["enbloc"]["webhooks"]:
            assert hook["namespaceSelector"] == {
                "matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
                ]
            }


def test_webhooks_do_not_match_pods_and_the_groups_of_others() -> None:
    (_, *advising) = found("ValidatingWebhookConfiguration")["enbloc"]["webhooks"]
    asked = {hook["name"]: [rule["resources"] + rule["apiGroups"] for rule in hook["rules"]] for hook in advising}
    groups = [["podgroups", "scheduling.sigs.k8s.io"], ["podgroups", "scheduling.x-k8s.io"]]
    groups.append(["podgroups", "scheduling.run.ai"])
    assert asked == {"groups.enbloc.dev": groups, "pods.enbloc.dev": [["pods", ""]]}
    for hook in advising:
        assert (hook["failurePolicy"], hook["timeoutSeconds"], hook["sideEffects"]) == ("Ignore", 2, "None")
        assert "caBundle" not in hook["clientConfig"]
    (pods,) = (hook for hook in advising if hook["name"] == "pods.enbloc.dev")
    assert [rule["operations"] for rule in pods["rules"]] == [["CREATE"]]
    conditions = {one["name"]: one["expression"] for one in pods["matchConditions"]}
    assert conditions["ours"] == "object.spec.schedulerName in ['enbloc', 'kar-scheduler']"
    assert "enbloc-controllers" in found("ServiceAccount")
    assert "'system:serviceaccount:enbloc-system:enbloc-controllers'" in conditions["not-made-by-us"]


def test_the_names_of_our_scheduler_are_those_of_the_config() -> None:
    objects = manifests(Settings("", schedulers=("mine",)))
    (hooks,) = (one["webhooks"] for one in objects if one["kind"] == "ValidatingWebhookConfiguration")
    assert hooks[-1]["matchConditions"][0]["expression"] == "object.spec.schedulerName in ['mine']"


def test_the_secrets_of_certificates_and_record_keys_are_empty() -> None:
    secrets = found("Secret")
    assert secrets.keys() == {"enbloc-webhook-certificates", "enbloc-record-keys"}
    for secret in secrets.values():
        assert "data" not in secret
        assert "stringData" not in secret
