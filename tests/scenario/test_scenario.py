"""Scenarios: what each document means, and every way in which one cannot be meant."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Ref
from enbloc.scenario.documents import BadInput, Document
from enbloc.scenario.scenario import Arrival, Scenario, Step, read_scenario
from enbloc.units import SECOND


def scenario(*values: dict[str, Any]) -> Scenario:
    return read_scenario([Document("f.yaml", number, value) for number, value in enumerate(values, 1)])


def findings(*values: dict[str, Any]) -> list[str]:
    with pytest.raises(BadInput) as caught:
        scenario(*values)
    return [str(finding) for finding in caught.value.findings]


def pod(name: str = "p", **annotations: str) -> dict[str, Any]:
    notes = {f"sim.enbloc.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    spec = {"containers": [{"name": "c"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": notes}, "spec": spec}


def job(**annotations: str) -> dict[str, Any]:
    template = pod(**annotations)
    template = {"metadata": {"annotations": template["metadata"]["annotations"]}, "spec": template["spec"]}
    tasks = [{"name": "w", "replicas": 1, "template": template}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"tasks": tasks},
    }


def step(do: str = "patch", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "sim.enbloc.dev/v1", "kind": "Step", "at": "5s", "do": do, **fields}


NODE = {"apiVersion": "v1", "kind": "Node", "name": "n1"}


def test_events_are_in_order_of_time_then_appearance() -> None:
    made = scenario(pod("b", at="5s"), pod("a"), pod("c", at="5s", delete_at="1m"))
    assert [(h.at_ns // SECOND, h.obj["metadata"]["name"]) for h in made.arrivals] == [(0, "a"), (5, "b"), (5, "c")]
    assert [h.delete_at_ns for h in made.arrivals] == [None, None, 60 * SECOND]


def test_namespaces_are_written_out_where_the_kind_has_them() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "default"}}
    unknown = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "wings.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Wing", "plural": "wings"},
            "versions": [{"name": "v1"}],
        },
    }
    wing = {"apiVersion": "example.com/v1", "kind": "Wing", "metadata": {"name": "w"}}
    made = scenario(pod(), node, unknown, wing, crd)
    assert [arrival.obj["metadata"].get("namespace") for arrival in made.arrivals] == [
        "default",
        None,
        None,
        "default",
        None,
    ]


def test_steps_are_read() -> None:
    made = scenario(
        step("patch", target=NODE, patch={"spec": {"unschedulable": True}}),
        step("fail-pod", target={"name": "p", "namespace": "x"}, exitCode=3),
        step("fail-node", target={"name": "n1"}),
        step("restart-scheduler"),
        step("create", object=pod()),
        step("delete", target={"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j"}),
    )
    assert made.events[:4] == [
        Step(5 * SECOND, 0, "patch", Ref("Node", "", "n1"), {"spec": {"unschedulable": True}}),
        Step(5 * SECOND, 1, "fail-pod", Ref("Pod", "x", "p"), {}, 3),
        Step(5 * SECOND, 2, "fail-node", Ref("Node", "", "n1")),
        Step(5 * SECOND, 3, "restart-scheduler"),
    ]
    assert isinstance(made.events[4], Arrival)
    assert made.events[5] == Step(5 * SECOND, 5, "delete", Ref("Job.batch.volcano.sh", "default", "j"))


@pytest.mark.parametrize(
    "value, reported",
    [
        (pod(at="soon"), "metadata.annotations[sim.enbloc.dev/at]: 'soon' is not a duration"),
        (pod(at="-1s"), "is negative"),
        (pod(at="5s", delete_at="4s"), "delete-at]: '4s' is before its creation"),
        (pod(runtime="5s"), "did you mean sim.enbloc.dev/run-time?"),
        (pod(exit_code="256"), "'256' is no exit code"),
        (pod(exit_code="1,,0"), "is no exit code"),
        (pod(exit_code="-1"), "is no exit code"),
        (job(run_time="x"), "spec.tasks[0].template.metadata.annotations[sim.enbloc.dev/run-time]: "),
        (job(at="5s"), "belongs on an object"),
        ({**job(), "metadata": {"name": "j", "annotations": {"sim.enbloc.dev/run-time": "5s"}}}, "belongs on a pod"),
        (pod("Odd_Name"), "metadata.name: 'Odd_Name' is not a valid name"),
        (pod("a\nb"), "metadata.name: 'a\\nb' is not a valid name"),
        (
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "NaN"}}},
            "f.yaml:1 Node n: status.allocatable.cpu: ",
        ),
        (
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1..5"}}},
            "status.capacity.cpu: '1..5' is not a quantity",
        ),
        ({**job(), "spec": {"tasks": [{"name": "w"}]}}, "f.yaml:1 Job j: spec.tasks[0].template: is missing"),
        ({"kind": "Pod"}, "apiVersion: is missing"),
        (step("patch", patch={}), "target: is missing: patch needs an object"),
        (step("delete", target={}), "target: is missing"),
        (step("patch", target={"kind": "Node", "name": "n"}, patch={}), "target.apiVersion: is missing"),
        (step("patch", target={**NODE, "name": ""}, patch={}), "target.name: must be a text"),
        (step("patch", target={**NODE, "names": "x"}, patch={}), "target.names: is not known"),
        (step("patch", target={**NODE, "name": "N 1"}, patch={}), "target.name: 'N 1' is not a valid name"),
        (step("patch", target=NODE), "patch: is missing"),
        (step("patch", target=NODE, patch=[1]), "patch: must be a mapping"),
        (step("fail-node", target=NODE, patch={}), "patch: is for `do: patch`"),
        (step("fail-node", target={**NODE, "kind": "Pod"}), "target.kind: fail-node acts on a Node"),
        (step("fail-pod", target={"name": "p"}, exitCode="1"), "exitCode: "),
        (step("fail-pod", target={"name": "p"}, exitCode=300), "exitCode: "),
        (step("explode"), "do: 'explode' is not known (create, patch"),
        ({**step(), "do": None}, "do: is missing"),
        (step("create"), "object: is missing"),
        (step("create", object={"kind": "Pod"}), "object.apiVersion: is missing"),
        (step("create", object=pod(at="1s")), "the Step's own `at` says when"),
        (step("restart-scheduler", when="5s"), "when: is not known in a Step"),
        ({**step("restart-scheduler"), "at": 5}, "at: a duration is a string"),
        ({**step("restart-scheduler"), "kind": "Leap"}, "kind: sim.enbloc.dev has two kinds only"),
    ],
)
def test_what_makes_no_sense_is_reported_with_its_field(value: dict[str, Any], reported: str) -> None:
    (line,) = findings(value)
    assert line.startswith("f.yaml:1")
    assert reported in line


def test_everything_wrong_is_reported_at_once() -> None:
    assert len(findings(pod(at="x"), pod(), pod(exit_code="x", run_time="y"))) == 3
