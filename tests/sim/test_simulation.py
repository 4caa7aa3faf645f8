"""The loop of virtual time, with a plane of a few lines: what happens when, how it ends, what is cut off."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from enbloc.api.meta import Obj, is_terminating, name_of, namespace_of, uid_of
from enbloc.cluster.embedded.api.store import Store
from enbloc.config import Config, parse
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import read_scenario
from enbloc.sim import simulation
from enbloc.sim.clock import EPOCH
from enbloc.sim.result import Result
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND
from support import manifests as m


class FirstNode:
    """Binds every pod to the first node. No gangs, no room: only the loop around it is looked at here."""

    made = 0

    def __init__(self, store: Store, config: Config) -> None:
        self._store = store
        FirstNode.made += 1

    def reconcile(self, now: int) -> bool:
        return False

    def schedule(self, now: int) -> bool:
        nodes = self._store.list("Node")[0]
        waiting = [pod for pod in self._store.list("Pod")[0] if not pod["spec"].get("nodeName")]
        if not nodes:
            return False
        for pod in waiting:
            if not is_terminating(pod):
                self._store.bind(namespace_of(pod), name_of(pod), uid_of(pod), name_of(nodes[0]))
        return bool(waiting)

    def due(self) -> int | None:
        return None

    def pending(self) -> list[dict[str, Any]]:
        return []

    def close(self) -> None:
        pass


def run(
    *values: Obj, until: int | None = None, plane: Callable[[Store, Config], simulation.Plane] = FirstNode
) -> Result:
    documents = [Document("f.yaml", number, value) for number, value in enumerate(values, 1)]
    return Simulation(read_scenario(documents), parse(None), plane).run(until)


def lines(result: Result, *leave_out: str) -> list[str]:
    return [str(line) for line in result.timeline if line.kind != "Node" and line.what not in leave_out]


def node(name: str = "n1") -> Obj:
    return m.node(name, 4, "8Gi")


def pod(name: str = "p", restart: str = "Never", **annotations: str) -> Obj:
    notes = {m.SIM + key.replace("_", "-"): text for key, text in annotations.items()}
    return m.pod(name, namespace=None, annotations=notes, restartPolicy=restart)


def step(at: str, do: str, **fields: Any) -> Obj:
    return {"apiVersion": "sim.enbloc.dev/v1", "kind": "Step", "at": at, "do": do, **fields}


def test_a_pod_lives() -> None:
    result = run(node(), pod(run_time="10s", start_delay="2s", at="1s"))
    assert lines(result) == [
        "t=1s created Pod default/p",
        "t=1s bound Pod default/p on n1",
        "t=3s running Pod default/p on n1",
        "t=13s succeeded Pod default/p on n1",
    ]
    assert (result.end, result.ended) == (13.0, "idle")
    assert result.summary["utilisation"]["cpu"] == round(12 / 13 / 4, 4)
    assert result.summary["makespan"] == 12.0
    none = {"min": 0.0, "median": 0.0, "p95": 0.0, "max": 0.0}
    assert result.summary["waiting"] == {"gangs": none, "pods": none}


def test_all_that_is_due_happens_before_anyone_reacts() -> None:
    result = run(pod("a", at="5s"), pod("b", at="5s"), {**node(), "metadata": node("n1")["metadata"]})
    assert lines(result, "running") == [
        "t=5s created Pod default/a",
        "t=5s created Pod default/b",
        "t=5s bound Pod default/a on n1",
        "t=5s bound Pod default/b on n1",
    ]


def test_objects_go_when_their_annotation_says_so() -> None:
    result = run(node(), pod(delete_at="10s", stop_delay="3s"), pod("q", at="10s", delete_at="10s"))
    assert "t=13s deleted Pod default/p" in lines(result)
    assert "t=10s deleted Pod default/q" in lines(result)
    assert result.end == 13.0


def test_until_stops_the_clock_but_the_end_is_the_last_change() -> None:
    result = run(node(), pod(run_time="1h"), until=60 * SECOND)
    assert (result.end, result.ended) == (0.0, "until")
    assert run(node(), pod(), until=60 * SECOND).ended == "idle"


def test_a_second_object_of_the_same_name_is_rejected() -> None:
    result = run(node(), pod(), pod())
    (line,) = [line for line in result.timeline if line.what == "rejected"]
    assert "already exists" in line.message
    assert result.summary["rejected"] == 1


def test_what_admission_refuses_is_one_line_and_the_run_goes_on() -> None:
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"tasks": [], "queue": "nowhere"},
    }
    result = run(node(), job, pod())
    (line,) = [line for line in result.timeline if line.what == "rejected"]
    assert (line.kind, line.namespace, line.name) == ("Job", "default", "j")
    assert "spec.tasks" in line.message
    assert "nowhere" in line.message
    assert "t=0s running Pod default/p on n1" in lines(result)


def test_steps_act() -> None:
    target = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    result = run(
        node(),
        pod(),
        pod("q"),
        step("5s", "patch", target=target, patch={"metadata": {"labels": {"a": "b"}}}),
        step("6s", "fail-pod", target=target, exitCode=3),
        step("7s", "delete", target={**target, "name": "q"}),
        step("8s", "create", object=pod("r")),
        step("9s", "fail-node", target={"name": "n1"}),
    )
    assert lines(result)[6:] == [
        "t=6s failed Pod default/p on n1: exit code 3",
        "t=7s deleted Pod default/q",
        "t=8s created Pod default/r",
        "t=8s bound Pod default/r on n1",
        "t=8s running Pod default/r on n1",
        "t=9s evicted Pod default/r on n1: NodeLost: node n1 failed",
        "t=9s deleted Pod default/r",
    ]
    kept = next(obj for obj in result.objects if obj["kind"] == "Pod")
    assert kept["metadata"]["labels"] == {"a": "b"}


def test_a_patch_may_touch_the_status() -> None:
    target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "default"}
    patch = {"metadata": {"labels": {"a": "b"}}, "status": {"state": "Closed"}}
    result = run(step("1s", "patch", target=target, patch=patch))
    queue = next(obj for obj in result.objects if obj["kind"] == "Queue" and name_of(obj) == "default")
    assert queue["status"]["state"] == "Closed"
    assert queue["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize("do", ["patch", "delete", "fail-pod"])
def test_a_step_whose_target_is_not_there_is_a_warning(do: str) -> None:
    fields: dict[str, Any] = {"patch": {}} if do == "patch" else {}
    result = run(step("5s", do, target={"apiVersion": "v1", "kind": "Pod", "name": "p"}, **fields))
    assert lines(result) == [f"t=5s warning Step default/p: {do}: Pod default/p does not exist"]


def test_restart_scheduler_makes_a_new_plane() -> None:
    before = FirstNode.made
    run(step("5s", "restart-scheduler"))
    assert FirstNode.made == before + 2


def test_built_in_objects_make_no_lines_but_are_there() -> None:
    result = run(pod())
    assert lines(result) == ["t=0s created Pod default/p"]
    assert {"Queue root", "Queue default", "Namespace default"} <= {
        f"{obj['kind']} {name_of(obj)}" for obj in result.objects
    }


def test_a_users_own_default_queue_counts() -> None:
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": {"weight": 7},
    }
    result = run(queue)
    assert lines(result) == ["t=0s created Queue default"]
    (kept,) = [obj for obj in result.objects if obj["kind"] == "Queue" and name_of(obj) == "default"]
    assert kept["spec"]["weight"] == 7


def test_restarts_without_end_are_cut_off_with_their_story() -> None:
    result = run(node(), pod(restart="Always", run_time="1s", exit_code="1"))
    assert result.ended == "cut-off"
    assert "pod default/p was restarted" in result.reason
    assert "restart 500" in result.reason
    assert run(node(), pod(restart="Always", run_time="1s"), until=60 * SECOND).ended == "until"


class Restless(FirstNode):
    """Changes something in every round."""

    def schedule(self, now: int) -> bool:
        from enbloc.api.meta import Ref

        self._rounds = getattr(self, "_rounds", 0) + 1
        self._store.patch(Ref("Node", "", "n1"), {"metadata": {"labels": {"round": str(self._rounds)}}})
        return True


def test_an_instant_that_never_settles_is_cut_off() -> None:
    result = run(node(), plane=Restless)
    assert result.ended == "cut-off"
    assert "objects kept changing for 1,001 rounds" in result.reason


class Recreator(FirstNode):
    """Replaces its pod in every round."""

    def reconcile(self, now: int) -> bool:
        from enbloc.api.meta import Ref

        if self._store.get("Pod", "default", "p"):
            self._store.delete(Ref("Pod", "default", "p"), grace_s=0)
        self._store.create(pod())
        return True


def test_recreating_without_end_is_cut_off_even_with_an_end() -> None:
    result = run(node(), plane=Recreator, until=SECOND)
    assert result.ended == "cut-off"
    assert "pod default/p was created" in result.reason


class Ticking(FirstNode):
    """A timer that does nothing, again and again."""

    def due(self) -> int | None:
        return self._store.now() + SECOND


def test_timers_that_change_nothing_do_not_move_the_end() -> None:
    result = run(node(), plane=Ticking)
    assert (result.end, result.ended) == (0.0, "idle")
    assert run(node(), plane=Ticking, until=5 * SECOND).ended == "until"


def test_retries_that_only_complain_come_to_an_end() -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    }
    template = {"spec": {"containers": [{"name": "c"}]}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"tasks": [{"name": "w", "replicas": 2, "template": template}]},
    }
    result = run(node(), quota, job, plane=simulation.control_plane)
    assert result.ended == "idle"
    assert len(result.timeline) < 100


def test_i6_same_input_same_bytes() -> None:
    def output() -> bytes:
        out = io.BytesIO()
        run(node(), *(pod(f"p{i}", run_time=f"{i}s", at=f"{i % 3}s") for i in range(20))).write_json(out)
        return out.getvalue()

    first = output()
    assert first == output()
    data = json.loads(first)
    assert list(data) == [
        "end",
        "ended",
        "timeline",
        "objects",
        "pending",
        "gangs",
        "without_effect",
        "warnings",
        "series",
        "summary",
    ]
    assert data["timeline"][0] == {
        "t": 0.0,
        "what": "created",
        "kind": "Node",
        "namespace": "",
        "name": "n1",
        "node": "",
        "message": "",
    }
    assert msgspec.json.decode(first) == data


def test_time_begins_at_a_fixed_date() -> None:
    (made,) = [obj for obj in run(pod(at="5s")).objects if obj["kind"] == "Pod"]
    assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:05Z"
    assert EPOCH % (86_400 * SECOND) == 0
