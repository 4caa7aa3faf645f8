"""What a container finds in its environment and on its command line."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from cluster.embedded.process.running import World, pod_of, python, state_of
from enbloc.api.meta import Obj
from enbloc.cluster.embedded.process.environment import Environment, command_line, expanded
from enbloc.cluster.embedded.process.fields import ContainerConfigError

ALLOCATABLE = {"cpu": 4 * 10**9, "memory": 2**30 * 10**9}


@pytest.mark.parametrize(
    "text, result",
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y2"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$", "$"),
        ("$(C)", "$(C)"),
        ("$A ${A} $(A", "$A ${A} $(A"),
        ("$()", "$()"),
        ("", ""),
    ],
)
def test_references_are_expanded_as_a_kubelet_does(text: str, result: str) -> None:
    assert expanded(text, {"A": "1", "B": "2"}) == result


def test_command_and_arguments_are_joined_and_expanded() -> None:
    container = {"command": ["run", "$(A)"], "args": ["--x=$(A)", "$(NOT)"]}
    assert command_line(container, {"A": "1"}) == ["run", "1", "--x=1", "$(NOT)"]


def pod_with(**container: Any) -> Obj:
    made = pod_of({"name": "main", "command": ["x"], **container}, nodeName="n1")
    made["metadata"].update(namespace="default", uid="u-1", labels={"app": "a"}, annotations={"note": "b"})
    return made


def environment_of(pod: Obj, *objects: Obj) -> dict[str, str]:
    known = {(obj["kind"], "default", obj["metadata"]["name"]): obj for obj in objects}
    environment = Environment(lambda kind, namespace, name: known.get((kind, namespace, name)))
    return environment.of(pod, pod["spec"]["containers"][0], {}, "127.64.0.9", ALLOCATABLE)


def config_map(name: str = "cm", **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name: str = "s", **data: str) -> Obj:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}


def test_values_may_refer_to_earlier_ones_and_later_ones_win() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(C)"}, {"name": "C", "value": "3"}]
    assert environment_of(pod_with(env=[*env, {"name": "A", "value": "4"}])) == {"A": "4", "B": "1$(C)", "C": "3"}


@pytest.mark.parametrize(
    "path, value",
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['app']", "a"),
        ("metadata.annotations['note']", "b"),
        ("metadata.labels['none']", ""),
        ("spec.nodeName", "n1"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "127.64.0.9"),
        ("status.hostIP", "127.0.0.1"),
    ],
)
def test_fields_of_the_pod(path: str, value: str) -> None:
    env = [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
    assert environment_of(pod_with(env=env)) == {"A": value}


@pytest.mark.parametrize(
    "asked, value",
    [
        ({"resource": "limits.cpu"}, "2"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "requests.memory", "divisor": "1Mi"}, "64"),
        ({"resource": "limits.memory", "divisor": "1Gi"}, "1"),  # not set: what the node has
        ({"resource": "requests.cpu"}, "0"),
    ],
)
def test_resources_of_the_container(asked: dict[str, str], value: str) -> None:
    resources = {"limits": {"cpu": "1500m"}, "requests": {"memory": "64Mi"}}
    env = [{"name": "A", "valueFrom": {"resourceFieldRef": asked}}]
    assert environment_of(pod_with(env=env, resources=resources)) == {"A": value}


def test_config_maps_and_secrets() -> None:
    container = {
        "envFrom": [
            {"configMapRef": {"name": "cm"}},
            {"prefix": "S_", "secretRef": {"name": "s"}},
            {"configMapRef": {"name": "missing", "optional": True}},
        ],
        "env": [
            {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "N", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "none", "optional": True}}},
            {"name": "a", "value": "own"},
        ],
    }
    found = environment_of(pod_with(**container), config_map(a="1", b="2"), secret(k="hidden"))
    assert found == {"a": "own", "b": "2", "S_k": "hidden", "K": "hidden"}


@pytest.mark.parametrize(
    "entry, why",
    [
        ({"valueFrom": {"configMapKeyRef": {"name": "cm", "key": "none"}}}, "couldn't find key none"),
        ({"valueFrom": {"secretKeyRef": {"name": "none", "key": "k"}}}, 'secret "none" not found'),
        ({"valueFrom": {"fieldRef": {"fieldPath": "spec.secrets"}}}, "there is no field"),
        ({"valueFrom": {"resourceFieldRef": {"resource": "weight.cpu"}}}, "there is no 'weight.cpu'"),
        ({"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}, "is no divisor"),
        ({"valueFrom": {"moonRef": {}}}, "moonRef"),
        ({"value": "a\0b"}, "zero byte"),
    ],
)
def test_what_cannot_be_answered_says_so(entry: dict[str, Any], why: str) -> None:
    with pytest.raises(ContainerConfigError, match=why):
        environment_of(pod_with(env=[{"name": "A", **entry}]), config_map(a="1"))


@pytest.mark.parametrize("name", ["", "A=B"])
def test_names_that_are_none_are_reported(name: str) -> None:
    with pytest.raises(ContainerConfigError, match="is not a valid name of an environment variable"):
        environment_of(pod_with(env=[{"name": name, "value": "1"}]))


def test_a_process_gets_its_own_environment_and_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/secret")
    monkeypatch.setenv("AWS_TOKEN", "secret")
    code = "import json, os, sys; print(json.dumps([dict(os.environ), os.getcwd(), sys.argv[1:]]))"
    env = [{"name": "A", "value": "1"}, {"name": "VC_TASK_INDEX", "value": "2"}]
    with World(env={"GIVEN": "to all"}) as world:
        container = python(code, env=env, args=["$(A)", "$(GIVEN)"], workingDir="/work/here")
        world.run(pod_of(container, hostname="host-7"))
        assert state_of(world.ended())["state"]["terminated"]["exitCode"] == 0
        found, cwd, arguments = json.loads(world.log())
    assert arguments == ["1", "to all"]
    assert cwd == f"{found['ENBLOC_ROOT']}/work/here"
    assert (found["A"], found["VC_TASK_INDEX"], found["GIVEN"], found["HOSTNAME"]) == ("1", "2", "to all", "host-7")
    assert "PATH" in found
    assert "KUBECONFIG" not in found
    assert "AWS_TOKEN" not in found
