"""What users can get wrong: one line that names file, document and field, never a traceback, never a half-run.

What cannot be read is refused before anything runs (`BadInput`, exit 2); what can be read and breaks a rule is a fault
of lint and a `rejected` line of the simulation.
"""

from __future__ import annotations

import contextlib
import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enbloc.api.meta import Obj
from enbloc.scenario.documents import BadInput
from support import manifests as m
from support.simulation import lint, simulate


def refusal(*objects: Obj) -> str:
    """What is said before anything runs; lint says the same."""
    with pytest.raises(BadInput) as caught:
        simulate(*objects)
    said = str(caught.value)
    assert said in [str(one) for one in lint(*objects).faults]
    assert "\n" not in said
    return said


def without(obj: Obj, *path: str | int) -> Obj:
    found = copy.deepcopy(obj)
    place: Any = found
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return found


def having(obj: Obj, value: Any, *path: str | int) -> Obj:
    found = copy.deepcopy(obj)
    place: Any = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return found


JOB = m.job("j", m.role("w", 2))
POD = m.pod("p")
_TEMPLATE = ("spec", "tasks", 0, "template", "spec")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (having(m.node("n"), "1..5", "status", "allocatable", "cpu"), ("Node n", "status.allocatable.cpu", "1..5")),
        (having(m.node("n"), "NaN", "status", "allocatable", "cpu"), ("status.allocatable.cpu", "NaN")),
        (having(m.node("n"), float("nan"), "status", "allocatable", "cpu"), ("status.allocatable.cpu",)),
        (having(m.node("n"), {"memory": "abc"}, "status", "capacity"), ("status.capacity.memory", "abc")),
        (having(POD, "1x", "spec", "containers", 0, "resources", "requests", "cpu"), ("Pod default/p", "cpu", "1x")),
        (having(POD, [], "spec", "containers", 0, "resources"), ("spec.containers[0].resources",)),
        (without(JOB, "spec", "tasks", 0, "template"), ("Job default/j", "spec.tasks[0].template", "missing")),
        (having(JOB, "two", "spec", "tasks", 0, "replicas"), ("spec.tasks[0].replicas",)),
        (having(JOB, 1.5, "spec", "minAvailable"), ("spec.minAvailable",)),
        (having(JOB, {}, "spec", "tasks"), ("spec.tasks",)),
        (having(m.queue("q"), "heavy", "spec", "weight"), ("Queue q", "spec.weight")),
        (m.queue("q", capability={"cpu": "much"}), ("spec.capability.cpu", "much")),
        (m.podgroup("g", 1, minTaskMember={"a": "one"}), ("PodGroup default/g", "spec.minTaskMember")),
        (having(POD, "Odd_Name", "metadata", "name"), ("metadata.name", "Odd_Name")),
        (having(POD, "x" * 300, "metadata", "name"), ("metadata.name",)),
        (having(POD, "../../etc", "metadata", "name"), ("metadata.name",)),
        (having(POD, "a\nb", "metadata", "name"), ("metadata.name",)),
        (without(POD, "metadata", "name"), ("metadata.name", "missing")),
        (without(POD, "metadata"), ("metadata",)),
        (without(POD, "kind"), ("kind",)),
        (without(POD, "apiVersion"), ("apiVersion",)),
        (m.pod("p", run_time="soon"), ("sim.enbloc.dev/run-time", "soon")),
        (m.pod("p", run_time="-5s"), ("sim.enbloc.dev/run-time", "negative")),
        (m.pod("p", exit_code="256"), ("sim.enbloc.dev/exit-code", "256")),
        (m.pod("p", at="5s", delete_at="2s"), ("sim.enbloc.dev/delete-at", "before")),
        (having(POD, {"sim.enbloc.dev/runtime": "5s"}, "metadata", "annotations"), ("runtime", "run-time")),
        (having(JOB, {"sim.enbloc.dev/run-time": "5s"}, "metadata", "annotations"), ("run-time", "template")),
        (m.step("1s", "patch", "Node", "n"), ("patch", "missing")),
        (m.step("1s", "delete"), ("target", "missing")),
        (m.step("1s", "explode", "Node", "n"), ("do", "explode", "restart-scheduler")),
        (m.step("soon", "delete", "Node", "n"), ("at", "soon")),
        (m.step("1s", "fail-node", "Pod", "p"), ("target.kind", "Node")),
        (m.step("1s", "create"), ("object", "missing")),
        (m.step("1s", "create", object={"kind": "Pod"}), ("object.",)),
        (m.step("1s", "fail-pod", "Pod", "p", exitCode=300), ("exitCode", "300")),
        (m.step("1s", "delete", "Node", "n", exitcode=3), ("exitcode", "exitCode")),
        (having(m.step("1s", "delete", "Node", "n"), "", "target", "name"), ("target.name",)),
    ],
)
def test_what_cannot_be_read_names_document_and_field(bad: Obj, words: tuple[str, ...]) -> None:
    said = refusal(m.node("first"), bad, m.node("last"))
    assert said.startswith("scenario.yaml:2")
    for word in words:
        assert word in said


def test_every_document_that_cannot_be_read_is_reported() -> None:
    with pytest.raises(BadInput) as caught:
        simulate(having(POD, "A_1", "metadata", "name"), m.node("n"), m.queue("q", capability={"cpu": "much"}))
    assert [str(finding).split()[0] for finding in caught.value.findings] == ["scenario.yaml:1", "scenario.yaml:3"]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (without(JOB, "spec", "tasks"), "spec.tasks"),
        (having(JOB, [], "spec", "tasks"), "spec.tasks"),
        (having(JOB, [], *_TEMPLATE, "containers"), "spec.tasks[0].template.spec.containers"),
        (having(JOB, -2, "spec", "tasks", 0, "replicas"), "spec.tasks[0].replicas"),
        (having(JOB, 2**40, "spec", "tasks", 0, "replicas"), "spec.tasks[0].replicas"),
        (having(JOB, 9, "spec", "minAvailable"), "spec.minAvailable"),
        (m.podgroup("j", -1), "spec.minMember"),
        (m.queue("j", 0), "spec.weight"),
    ],
)
def test_what_breaks_a_rule_is_a_fault_and_a_rejected_line(bad: Obj, field: str) -> None:
    assert field in [fault.field for fault in lint(bad).faults]
    answer = simulate(m.node("n"), bad, m.pod("good"))
    assert field in answer.rejected("j")
    assert list(answer.first_bound()) == ["good"], "the others go on"


def test_a_step_that_names_nothing_there_is_reported_and_the_run_goes_on() -> None:
    answer = simulate(m.node("n"), m.pod("p"), m.step("5s", "delete", "Pod", "ghost"), m.pod("late", at="6s"))
    (line,) = answer.lines("warning")
    assert (line["t"], line["name"]) == (5.0, "ghost")
    assert "does not exist" in line["message"]
    assert set(answer.first_bound()) == {"p", "late"}


def test_an_object_that_is_there_already_is_rejected() -> None:
    answer = simulate(m.node("n"), m.pod("p"), m.pod("p", at="1s"))
    assert "already exists" in answer.rejected("p")


def test_a_patch_that_breaks_an_object_is_rejected_and_changes_nothing() -> None:
    answer = simulate(
        m.node("n"),
        m.pod("p"),
        m.queue("q"),
        m.patch("1s", "Queue", "q", spec={"weight": "heavy"}),
        m.patch("2s", "Node", "n", status={"allocatable": {"cpu": "1..5"}}),
        m.patch("3s", "Pod", "p", spec={"containers": []}),
        m.patch("4s", "Pod", "p", metadata={"name": "other"}),
    )
    assert [line["t"] for line in answer.lines("rejected")] == [1.0, 2.0, 3.0, 4.0]
    assert answer.obj("Queue", "q")["spec"]["weight"] == 1
    assert answer.obj("Node", "n")["status"]["allocatable"]["cpu"] == "4"


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("PodGroup", {"conditions": True}),
        ("PodGroup", {"conditions": ["why"]}),
        ("Job", {"controlledResources": 7}),
        ("Job", {"conditions": {"a": 1}}),
    ],
)
def test_a_status_of_the_wrong_shape_is_rejected(kind: str, status: dict[str, Any]) -> None:
    answer = simulate(
        m.node("n", 1),
        m.podgroup("x", 2),
        m.pod("p", group="x"),
        m.one_pod_job("x", 2),
        m.patch("1s", kind, "x", status=status),
    )
    assert next(iter(status)) in answer.rejected("x")


def test_unknown_kinds_and_fields_are_kept_as_they_came() -> None:
    odd = {
        "apiVersion": "example.com/v1",
        "kind": "Odd",
        "metadata": {"name": "o"},
        "spec": {"x": [None, {"y": 0.5}]},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "odds.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Odd", "plural": "odds"},
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    answer = simulate(definition, odd, m.node("n"), having(m.queue("q"), {"a": 1}, "spec", "futureField"))
    assert answer.obj("Odd", "o")["spec"] == odd["spec"]
    assert answer.obj("Queue", "q")["spec"]["futureField"] == {"a": 1}


# ---- any wrong value in any place


_RICH: list[Obj] = [
    m.priority_class("high", 5),
    m.queue("q", 2, capability={"cpu": "10"}, guarantee={"cpu": "1"}, deserved={"cpu": "4"}, dequeueStrategy="fifo"),
    m.node("n", 4, labels={"a": "b"}, taints=[{"key": "k", "effect": "PreferNoSchedule"}]),
    m.podgroup("g", 1, queue="q", minTaskMember={"r": 1}, minResources={"cpu": "1"}, priorityClassName="high"),
    m.pod(
        "p",
        group="g",
        role="r",
        run_time="5s",
        exit_code="1,0",
        labels={"x": "y"},
        priority="high",
        tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
        nodeSelector={"a": "b"},
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
    ),
    m.job(
        "j",
        m.role("a", 2, 1, run_time="5s", policies=[{"event": "PodFailed", "action": "RestartTask", "timeout": "5s"}]),
        m.role("b", 1, depends_on={"name": ["a"], "iteration": "any"}),
        queue="q",
        plugins={"svc": ["--x=y"], "ssh": [], "env": [], "pytorch": [], "tensorflow": [], "mpi": [], "ray": []},
        volumes=[{"mountPath": "/d", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}],
    ),
    {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": {"name": "c", "namespace": "default"},
        "action": "CloseQueue",
        "target": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "q"},
    },
    m.patch("2s", "Queue", "q", spec={"weight": 3}),
]
_WRONG: list[Any] = [
    None,
    True,
    -1,
    0,
    2**70,
    1.5,
    "",
    "-",
    "x" * 300,
    "1..5",
    "NaN",
    "é\u2028",
    [],
    [None],
    [1],
    ["a"],
    {},
    {"a": 1},
    {"": None},
    {"a": {"b": []}},
]


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from _paths(child, (*path, key))


_PLACES = [(number, path) for number, obj in enumerate(_RICH) for path in _paths(obj)]


@given(st.sampled_from(_PLACES), st.sampled_from(_WRONG))
@settings(max_examples=40)
def test_no_wrong_value_anywhere_is_more_than_refused(place: tuple[int, tuple[str | int, ...]], value: Any) -> None:
    number, path = place
    world = [having(obj, value, *path) if index == number else obj for index, obj in enumerate(_RICH)]
    with contextlib.suppress(BadInput):
        lint(*world)
    with contextlib.suppress(BadInput):
        simulate(*world, until="20s")


_STATUSES = [("phase",), ("state",), ("state", "phase"), ("conditions",), ("controlledResources",), ("version",)]
_PATCHES = [
    *(
        (number, path)
        for number, path in _PLACES
        if all(isinstance(key, str) for key in path) and "at" not in _RICH[number]
    ),
    *((number, ("status", *path)) for path in _STATUSES for number in range(len(_RICH) - 1)),
]
"""A merge patch replaces lists whole."""


@given(st.sampled_from(_PATCHES), st.sampled_from(_WRONG))
@settings(max_examples=60)
def test_no_wrong_patch_is_more_than_rejected(place: tuple[int, tuple[str, ...]], value: Any) -> None:
    number, path = place
    body: Any = value
    for key in reversed(path):
        body = {key: body}
    obj = _RICH[number]
    target = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"]}
    target |= {"namespace": "default"} if "namespace" in obj["metadata"] else {}
    broken = m.step("1s", "patch", patch=body) | {"target": target}
    simulate(*_RICH, m.node("m", 8), broken, m.step("3s", "restart-scheduler"), until="20s")


# ---- through the command line


def enbloc(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from enbloc.cli.main import main; main()", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "config",
    [
        {"actions": "enqueue, alocate"},
        {"tiers": [{"plugins": [{"name": "gangg"}]}]},
    ],
)
def test_c_a_bad_config_is_exit_2_and_one_line(config: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(config))
    done = enbloc("sim", "-", "--config", str(path), "-o", "json", stdin=json.dumps(m.node("n")))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert str(path) in done.stderr


def test_lint_prints_faults_as_people_and_programs_read_them() -> None:
    stream = "\n---\n".join(
        json.dumps(one) for one in (m.one_pod_job("ok"), m.job("j", m.role("w", 1, 2), queue="q"), m.queue("r"))
    )
    done = enbloc("lint", "-", stdin=stream)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("<stdin>:3 Job default/j: spec.tasks[0].minAvailable: ") for line in lines), lines
    assert any(line.startswith("<stdin>:3 Job default/j: spec.queue: ") for line in lines), lines
    data = json.loads(enbloc("lint", "-", "-o", "json", stdin=stream).stdout)
    assert [one["metadata"]["name"] for one in data["objects"]] == ["ok", "r"]
    assert {fault["field"] for fault in data["faults"]} == {"spec.tasks[0].minAvailable", "spec.queue"}
    assert {(fault["document"], fault["kind"], fault["namespace"]) for fault in data["faults"]} == {
        (2, "Job", "default")
    }
