"""What users can get wrong: one line that names file, document and field, never a traceback, never a half-run.

What cannot be read is refused before anything runs (`BadInput`, exit 2); what can be read and breaks a rule is a fault
of lint and a `rejected` line of the simulation.
"""

from __future__ import annotations

import contextlib
import copy
import io
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
from queue_stories import job, linted, node, patch, play, pod, podgroup, priority, queue, role, small, step


def refusal(*objects: Obj) -> str:
    """What is said before anything runs; lint says the same."""
    with pytest.raises(BadInput) as caught:
        play(*objects)
    with pytest.raises(BadInput) as told_by_lint:
        linted(*objects)
    said = str(caught.value)
    assert said == str(told_by_lint.value)
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


JOB = job("j", role("w", 2))
POD = pod("p")
_TEMPLATE = ("spec", "tasks", 0, "template", "spec")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (having(node("n"), "1..5", "status", "allocatable", "cpu"), ("Node n", "status.allocatable.cpu", "1..5")),
        (having(node("n"), "NaN", "status", "allocatable", "cpu"), ("status.allocatable.cpu", "NaN")),
        (having(node("n"), float("nan"), "status", "allocatable", "cpu"), ("status.allocatable.cpu",)),
        (having(node("n"), "abc", "status", "capacity", "memory"), ("status.capacity.memory", "abc")),
        (having(POD, "1x", "spec", "containers", 0, "resources", "requests", "cpu"), ("Pod default/p", "cpu", "1x")),
        (having(POD, [], "spec", "containers", 0, "resources"), ("spec.containers[0].resources",)),
        (without(JOB, "spec", "tasks", 0, "template"), ("Job default/j", "spec.tasks[0].template", "missing")),
        (having(JOB, "two", "spec", "tasks", 0, "replicas"), ("spec.tasks[0].replicas",)),
        (having(JOB, 1.5, "spec", "minAvailable"), ("spec.minAvailable",)),
        (having(JOB, {}, "spec", "tasks"), ("spec.tasks",)),
        (having(queue("q"), "heavy", "spec", "weight"), ("Queue q", "spec.weight")),
        (queue("q", capability={"cpu": "much"}), ("spec.capability.cpu", "much")),
        (podgroup("g", 1, minTaskMember={"a": "one"}), ("PodGroup default/g", "spec.minTaskMember")),
        (having(POD, "Odd_Name", "metadata", "name"), ("metadata.name", "Odd_Name")),
        (having(POD, "x" * 300, "metadata", "name"), ("metadata.name",)),
        (having(POD, "../../etc", "metadata", "name"), ("metadata.name",)),
        (having(POD, "a\nb", "metadata", "name"), ("metadata.name",)),
        (without(POD, "metadata", "name"), ("metadata.name", "missing")),
        (without(POD, "metadata"), ("metadata",)),
        (without(POD, "kind"), ("kind",)),
        (without(POD, "apiVersion"), ("apiVersion",)),
        (pod("p", run="soon"), ("sim.enbloc.dev/run-time", "soon")),
        (pod("p", run="-5s"), ("sim.enbloc.dev/run-time", "negative")),
        (pod("p", exit_code="256"), ("sim.enbloc.dev/exit-code", "256")),
        (pod("p", at="5s", delete_at="2s"), ("sim.enbloc.dev/delete-at", "before")),
        (having(POD, {"sim.enbloc.dev/runtime": "5s"}, "metadata", "annotations"), ("runtime", "run-time")),
        (having(JOB, {"sim.enbloc.dev/run-time": "5s"}, "metadata", "annotations"), ("run-time", "template")),
        (step("1s", "patch", "Node", "n"), ("patch", "missing")),
        (step("1s", "delete"), ("target", "missing")),
        (step("1s", "explode", "Node", "n"), ("do", "explode", "restart-scheduler")),
        (step("soon", "delete", "Node", "n"), ("at", "soon")),
        (step("1s", "fail-node", "Pod", "p"), ("target.kind", "Node")),
        (step("1s", "create"), ("object", "missing")),
        (step("1s", "create", object={"kind": "Pod"}), ("object.",)),
        (step("1s", "fail-pod", "Pod", "p", exitCode=300), ("exitCode", "300")),
        (step("1s", "delete", "Node", "n", exitcode=3), ("exitcode", "exitCode")),
        (having(step("1s", "delete", "Node", "n"), "", "target", "name"), ("target.name",)),
    ],
)
def test_what_cannot_be_read_names_document_and_field(bad: Obj, words: tuple[str, ...]) -> None:
    said = refusal(node("first"), bad, node("last"))
    assert said.startswith("story.yaml:2")
    for word in words:
        assert word in said


def test_every_document_that_cannot_be_read_is_told() -> None:
    with pytest.raises(BadInput) as caught:
        play(having(POD, "A_1", "metadata", "name"), node("n"), queue("q", capability={"cpu": "much"}))
    assert [str(finding).split()[0] for finding in caught.value.findings] == ["story.yaml:1", "story.yaml:3"]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (without(JOB, "spec", "tasks"), "spec.tasks"),
        (having(JOB, [], "spec", "tasks"), "spec.tasks"),
        (having(JOB, [], *_TEMPLATE, "containers"), "spec.tasks[0].template.spec.containers"),
        (having(JOB, -2, "spec", "tasks", 0, "replicas"), "spec.tasks[0].replicas"),
        (having(JOB, 2**40, "spec", "tasks", 0, "replicas"), "spec.tasks[0].replicas"),
        (having(JOB, 9, "spec", "minAvailable"), "spec.minAvailable"),
        (podgroup("j", -1), "spec.minMember"),
        (queue("j", 0), "spec.weight"),
    ],
)
def test_what_breaks_a_rule_is_a_fault_and_a_rejected_line(bad: Obj, field: str) -> None:
    assert field in [fault.field for fault in linted(bad).faults]
    told = play(node("n"), bad, pod("good"))
    assert field in told.rejected("j")
    assert list(told.bound()) == ["good"], "the others go on"


def test_a_step_that_names_nothing_there_is_told_and_the_run_goes_on() -> None:
    told = play(node("n"), pod("p"), step("5s", "delete", "Pod", "ghost"), pod("late", at="6s"))
    (line,) = told.lines("warning")
    assert (line.t, line.name) == (5.0, "ghost")
    assert "does not exist" in line.message
    assert set(told.bound()) == {"p", "late"}


def test_an_object_that_is_there_already_is_rejected() -> None:
    told = play(node("n"), pod("p"), pod("p", at="1s"))
    assert "already exists" in told.rejected("p")


def test_a_patch_that_breaks_an_object_is_rejected_and_changes_nothing() -> None:
    told = play(
        node("n"),
        pod("p"),
        queue("q"),
        patch("1s", "Queue", "q", spec={"weight": "heavy"}),
        patch("2s", "Node", "n", status={"allocatable": {"cpu": "1..5"}}),
        patch("3s", "Pod", "p", spec={"containers": []}),
        patch("4s", "Pod", "p", metadata={"name": "other"}),
    )
    assert [line.t for line in told.lines("rejected")] == [1.0, 2.0, 3.0, 4.0]
    assert told.obj("Queue", "q")["spec"]["weight"] == 1
    assert told.obj("Node", "n")["status"]["allocatable"]["cpu"] == "4"


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
    told = play(node("n", 1), podgroup("x", 2), pod("p", "x"), small("x", 2), patch("1s", kind, "x", status=status))
    assert next(iter(status)) in told.rejected("x")


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
    told = play(definition, odd, node("n"), having(queue("q"), {"a": 1}, "spec", "futureField"))
    assert told.obj("Odd", "o")["spec"] == odd["spec"]
    assert told.obj("Queue", "q")["spec"]["futureField"] == {"a": 1}


# ---- any wrong value in any place


_RICH: list[Obj] = [
    priority("high", 5),
    queue("q", 2, capability={"cpu": "10"}, guarantee={"cpu": "1"}, deserved={"cpu": "4"}, dequeueStrategy="fifo"),
    node("n", 4, labels={"a": "b"}, taints=[{"key": "k", "effect": "PreferNoSchedule"}]),
    podgroup("g", 1, "q", minTaskMember={"r": 1}, minResources={"cpu": "1"}, priorityClassName="high"),
    pod(
        "p",
        "g",
        "r",
        run="5s",
        exit_code="1,0",
        labels={"x": "y"},
        priority="high",
        tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
        nodeSelector={"a": "b"},
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
    ),
    job(
        "j",
        role("a", 2, 1, run="5s", policies=[{"event": "PodFailed", "action": "RestartTask", "timeout": "5s"}]),
        role("b", 1, dependsOn={"name": ["a"], "iteration": "any"}),
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
    patch("2s", "Queue", "q", spec={"weight": 3}),
]
_WRONG: list[Any] = [
    None, True, -1, 0, 2**70, 1.5, "", "-", "x" * 300, "1..5", "NaN", "é\u2028",
    [], [None], [1], ["a"], {}, {"a": 1}, {"": None}, {"a": {"b": []}},
]  # fmt: skip


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
        linted(*world)
    with contextlib.suppress(BadInput):
        play(*world, until="20s").result.write_json(io.BytesIO())


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
    broken = step("1s", "patch", patch=body) | {"target": target}
    play(*_RICH, node("m", 8), broken, step("3s", "restart-scheduler"), until="20s")


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
    done = enbloc("sim", "-", "--config", str(path), "-o", "json", stdin=json.dumps(node("n")))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert str(path) in done.stderr


def test_lint_prints_faults_as_people_and_programs_read_them() -> None:
    stream = "\n---\n".join(json.dumps(one) for one in (small("ok"), job("j", role("w", 1, 2), queue="q"), queue("r")))
    done = enbloc("lint", "-", stdin=stream)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("<stdin>:2 Job default/j: spec.tasks[0].minAvailable: ") for line in lines), lines
    assert any(line.startswith("<stdin>:2 Job default/j: spec.queue: ") for line in lines), lines
    data = json.loads(enbloc("lint", "-", "-o", "json", stdin=stream).stdout)
    assert [one["metadata"]["name"] for one in data["objects"]] == ["ok", "r"]
    assert {fault["field"] for fault in data["faults"]} == {"spec.tasks[0].minAvailable", "spec.queue"}
    assert {(fault["document"], fault["kind"], fault["namespace"]) for fault in data["faults"]} == {
        (2, "Job", "default")
    }
