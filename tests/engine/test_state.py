"""What an event does to the state: which status a task has then, which gangs are read again, which events are noted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from enbloc.api.allowed_namespaces import ALLOWED_NAMESPACES
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.resources import CPU
from enbloc.engine.core.tables.tasks import Task, TaskStatus
from enbloc.engine.events import EventKind
from enbloc.gangs.hints import RUN_TIME
from engine.scenes import Scene, group, name_of, pods_of, small
from support import manifests as m

PENDING, BOUND, HELD = TaskStatus.PENDING, TaskStatus.BOUND, TaskStatus.HELD


def place(scene: Scene, task: Task) -> None:
    Transaction(scene.state).place([task], [scene.state.nodes.rows["n"]])


def run_and_evict(scene: Scene, task: Task) -> None:
    scene.direct.put(m.pod(task.name, group="g", nodeName="n"))
    scene.state.evict(task)


PREPARED: dict[str, Callable[[Scene, Task], None]] = {
    "pending": lambda scene, task: None,
    "assumed": place,
    "held": lambda scene, task: scene.state.restore_hold(task, "n"),
    "nominated": lambda scene, task: scene.state.nominate(task, "n"),
    "evicted": run_and_evict,
}


def event(prepared: str, **fields: Any) -> tuple[Scene, Task, bool]:
    """The pod `g-0` changes; whether its gang is read again."""
    scene = small()
    PREPARED[prepared](scene, scene.task("g-0"))
    scene.state.dirty.clear()
    scene.direct.put({**m.pod("g-0", group="g", **fields)})
    scene.state.validate()
    return scene, scene.task("g-0"), scene.gang().key in scene.state.dirty


@pytest.mark.parametrize(
    ("prepared", "fields", "status", "node", "is_read"),
    [
        ("pending", {}, PENDING, "", False),
        ("pending", {"restartPolicy": "Always"}, PENDING, "", False),
        ("pending", {"labels": {"a": "b"}}, PENDING, "", True),
        ("pending", {"cpu": 2}, PENDING, "", True),
        ("pending", {"priority": 5}, PENDING, "", True),
        ("pending", {"role": "w"}, PENDING, "", True),
        ("pending", {"nodeName": "m"}, BOUND, "m", True),
        ("assumed", {}, TaskStatus.ASSUMED, "n", False),  # from before our Binding
        ("assumed", {"labels": {"a": "b"}}, TaskStatus.ASSUMED, "n", False),
        ("assumed", {"nodeName": "n"}, BOUND, "n", True),
        ("assumed", {"nodeName": "n", "labels": {"a": "b"}}, BOUND, "n", True),
        ("assumed", {"nodeName": "m"}, BOUND, "m", True),
        ("assumed", {"schedulingGates": [{"name": "x"}]}, TaskStatus.GATED, "", True),
        ("held", {}, HELD, "n", False),
        ("held", {"restartPolicy": "Always"}, HELD, "n", False),  # no filter reads it
        ("held", {"labels": {"a": "b"}}, PENDING, "", True),
        ("held", {"cpu": 2}, PENDING, "", True),
        ("held", {"priority": 5}, PENDING, "", True),
        ("held", {"role": "w"}, PENDING, "", True),
        ("held", {"nodeName": "n"}, BOUND, "n", True),
        ("nominated", {}, TaskStatus.NOMINATED, "n", False),
        ("nominated", {"priority": 5}, PENDING, "", True),
        ("nominated", {"nodeName": "m"}, BOUND, "m", True),
        ("evicted", {"nodeName": "n"}, TaskStatus.RELEASING, "n", False),  # it does not terminate yet
        ("evicted", {"nodeName": "n", "labels": {"a": "b"}}, TaskStatus.RELEASING, "n", False),
    ],
)
def test_the_status_of_a_task_after_its_pod_changed(
    prepared: str, fields: dict[str, Any], status: TaskStatus, node: str, is_read: bool
) -> None:
    scene, task, read = event(prepared, **fields)
    assert (task.status, task.node, read) == (status, node, is_read)
    assert task.gang.priority == fields.get("priority", 0)
    assert task.labels.get("a") == (fields.get("labels", {}).get("a") if is_read else None)
    used = {"n": 0, "m": 0} | ({node: fields.get("cpu", 1)} if node else {})
    assert {name: 4 - scene.free_cpu(name) for name in "nm"} == used


def test_an_eviction_is_over_when_the_pod_terminates_or_is_gone() -> None:
    scene, task, _ = event("evicted", nodeName="n")
    assert scene.state.evicting == {task.uid}
    leaving = m.pod("g-0", group="g", nodeName="n")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    scene.direct.put(leaving)
    assert (task.status, scene.state.evicting) == (TaskStatus.RELEASING, set())
    again, task, _ = event("evicted", nodeName="n")
    again.delete_pod("g-0")
    assert again.state.evicting == set()
    assert again.free_cpu("n") == 4


@pytest.mark.parametrize(
    ("prepared", "undo", "status"),
    [
        ("assumed", State.forget_assumed, PENDING),
        ("pending", State.forget_assumed, PENDING),
        ("held", State.forget_assumed, HELD),
        ("evicted", State.forget_assumed, TaskStatus.RELEASING),
        ("evicted", State.unevict, BOUND),
        ("assumed", State.unevict, TaskStatus.ASSUMED),
    ],
)
def test_what_the_api_refused_is_undone(prepared: str, undo: Callable[[State, str], None], status: TaskStatus) -> None:
    scene = small()
    task = scene.task("g-0")
    PREPARED[prepared](scene, task)
    before = task.status
    scene.state.dirty.clear()
    undo(scene.state, task.uid)
    undo(scene.state, "unknown")
    scene.state.validate()
    assert task.status is status
    assert (scene.gang().key in scene.state.dirty) is (before is not status)
    if prepared == "evicted":
        assert (task.uid in scene.state.evicting) is (undo is State.forget_assumed)


def test_k8_a_task_that_times_out_waits_again_if_its_annotation_is_refused() -> None:
    scene = small()
    task = scene.task("g-0")
    scene.state.dirty.clear()
    scene.state.time_out(task)
    assert (task.status, scene.gang().total_pending) == (TaskStatus.TIMED_OUT, 1)
    assert scene.gang().key in scene.state.dirty
    scene.state.forget_assumed(task.uid)
    assert (task.status, scene.gang().total_pending) == (PENDING, 2)


# ---- which gangs are read again


def changed(scene: Scene, change: Callable[[Scene], object]) -> list[str]:
    """The gangs that are read again after a change."""
    scene.state.dirty.clear()
    scene.state.events.clear()
    change(scene)
    return sorted(name_of(gang) for gang in scene.state.dirty.values())


def two_queues() -> Scene:
    """Gang `a` in a queue below `top`, gang `b` in another queue."""
    queues = [m.queue("top"), m.queue("team", parent="top"), m.queue("other")]
    gangs = [group("a", queue="team"), pods_of("a"), group("b", queue="other"), pods_of("b")]
    return Scene(m.node("n"), queues, *gangs)


@pytest.mark.parametrize(
    ("change", "read"),
    [
        (lambda scene: scene.direct.put(m.queue("team", 5, parent="top")), ["a"]),
        (lambda scene: scene.direct.put(m.queue("top", 5)), ["a"]),
        (lambda scene: scene.direct.put(m.queue("other", 5)), ["b"]),
        (lambda scene: scene.direct.put(m.queue("root", 5)), ["a", "b"]),
        (lambda scene: scene.direct.put(m.queue("team", parent="top")), []),  # nothing changed
        (lambda scene: scene.direct.put(m.queue("new")), []),
        (lambda scene: scene.direct.delete("Queue.scheduling.volcano.sh", "other"), ["b"]),
    ],
)
def test_v4_gangs_of_a_queue_and_of_those_below_it_are_read_when_it_changes(
    change: Callable[[Scene], object], read: list[str]
) -> None:
    scene = two_queues()
    assert changed(scene, change) == read
    is_new = bool(read) or "new" in scene.state.queues.queues
    assert (EventKind.QUEUE_CHANGED in scene.state.events.kinds) is is_new


@pytest.mark.parametrize(("queue", "labels", "read"), [("shut", {"a": "b"}, ["g"]), ("open", {"a": "b"}, [])])
def test_s5_gangs_of_a_queue_that_restricts_namespaces_are_read_when_labels_of_theirs_change(
    queue: str, labels: dict[str, str], read: list[str]
) -> None:
    shut = m.queue("shut")
    shut["metadata"]["annotations"] = {ALLOWED_NAMESPACES: "team-a"}
    scene = Scene(m.node("n"), shut, m.queue("open"), group(queue=queue), pods_of())
    assert changed(scene, lambda scene: scene.state.set_namespace("default", labels)) == read
    assert scene.state.namespace_labels == {"default": labels}
    assert changed(scene, lambda scene: scene.state.set_namespace("default", labels)) == []
    assert changed(scene, lambda scene: scene.state.set_namespace("elsewhere", labels)) == []
    assert changed(scene, lambda scene: scene.state.set_namespace("default", {})) == read
    assert scene.state.namespace_labels == {"elsewhere": labels}


def test_n4_a_gang_is_read_when_a_pod_of_another_scheduler_comes_changes_or_goes() -> None:
    scene = Scene(m.node("n"), group(), pods_of(count=1))
    foreign = m.pod("f", group="g", scheduler="kai")
    assert changed(scene, lambda scene: scene.direct.put(foreign)) == ["g"]
    assert scene.state.foreign.of(scene.gang().key) == {"kai": 1}
    assert changed(scene, lambda scene: scene.direct.put(foreign)) == []
    assert changed(scene, lambda scene: scene.direct.put({**foreign, "status": {"phase": "Succeeded"}})) == ["g"]
    assert scene.state.foreign.of(scene.gang().key) == {}
    scene.direct.put(foreign)
    assert changed(scene, lambda scene: scene.delete_pod("f")) == ["g"]
    assert scene.state.foreign.of(scene.gang().key) == {}


def test_n4_a_pod_of_another_scheduler_that_is_bound_uses_room() -> None:
    scene = Scene(m.node("n"), group(), pods_of(count=1), m.pod("f", group="g", scheduler="kai"))
    scene.direct.put(m.pod("f", group="g", scheduler="kai", nodeName="n"))
    scene.state.validate()
    assert scene.free_cpu("n") == 3
    assert scene.state.foreign.of(scene.gang().key) == {}


def test_gangs_are_forgotten_with_the_last_that_is_left_of_them() -> None:
    scene = Scene(m.node("n"), group(), pods_of(count=1), m.pod("alone"))
    assert sorted(map(name_of, scene.state.gangs.values())) == ["alone", "g"]
    scene.delete_pod("alone")
    assert list(map(name_of, scene.state.gangs.values())) == ["g"]
    assert changed(scene, lambda scene: scene.delete_pod("g-0")) == ["g"]
    scene.direct.delete("PodGroup.scheduling.volcano.sh", "g")
    assert not scene.state.gangs
    assert scene.state.gang_table.priorities == {}


def test_a_gang_without_an_object_stays_as_long_as_one_of_its_pods_is_left() -> None:
    scene = Scene(m.node("n"), m.koordinator_gang("g", 2))
    scene.delete_pod("g-0")
    assert len(scene.state.gangs) == 1
    scene.delete_pod("g-1")
    assert not scene.state.gangs


def test_v4_a_gang_is_read_when_the_queue_that_it_names_comes() -> None:
    scene = Scene(m.node("n"), group(queue="late"), pods_of())
    assert changed(scene, lambda scene: scene.direct.put(m.queue("late"))) == ["g"]
    assert scene.state.queues.get("late").exists


def test_a_gang_is_read_when_one_of_its_pods_is_evicted() -> None:
    scene = Scene(m.node("n"), group(), pods_of(nodeName="n"))
    assert changed(scene, lambda scene: scene.state.evict(scene.task("g-0"))) == ["g"]


# ---- events that could help gangs that wait (G9)


@pytest.mark.parametrize(
    ("timed", "unknown", "known"),
    [(True, {EventKind.FORECAST_CHANGED}, EventKind.FORECAST_CHANGED), (False, set(), EventKind.VICTIMS_CHANGED)],
)
def test_r4_r8_the_start_of_a_pod_changes_the_forecast(timed: bool, unknown: set[EventKind], known: EventKind) -> None:
    """Beside reserved nodes it counts when a pod started (R4), whether or not its run time is known (R8)."""
    of_known, of_unknown = m.pod("known", nodeName="n", annotations={RUN_TIME: "10s"}), m.pod("unknown", nodeName="n")
    scene = Scene(m.node("n"), of_known, of_unknown)
    scene.state.timed = timed
    for pod, kinds in ((of_unknown, unknown), (of_known, {known}), (of_known, set())):
        started = {**pod, "status": {"startTime": "2026-01-01T00:00:00Z"}}
        changed(scene, lambda scene, started=started: scene.direct.put(started))
        assert scene.state.events.kinds == kinds


@pytest.mark.parametrize("kind", ["PersistentVolume", "PersistentVolumeClaim"])
def test_g9_volumes_that_come_change_or_go_are_events_and_claims_are_known_by_name(kind: str) -> None:
    scene = small()
    namespace = "default" if kind == "PersistentVolumeClaim" else None
    made = {"apiVersion": "v1", "kind": kind, "metadata": m.metadata("v", namespace), "spec": {}}
    of_claim = kind == "PersistentVolumeClaim"
    expected = {EventKind.VOLUME_CLAIM_CHANGED if of_claim else EventKind.VOLUME_CHANGED}
    for gone, kinds in ((False, expected), (False, set()), (True, expected), (True, set())):
        changed(scene, lambda scene, gone=gone: scene.state.put_volume(kind, made, gone))
        assert scene.state.events.kinds == kinds
        if kinds and of_claim:
            assert {one.subject for one in scene.state.events.of(EventKind.VOLUME_CLAIM_CHANGED)} == {("default", "v")}


def test_p2_a_budget_counts_the_pods_that_exist_and_is_gone_when_it_is_deleted() -> None:
    scene = Scene(m.node("n"), m.pod("p", labels={"app": "a"}, nodeName="n"))
    spec = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 1}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": m.metadata("b"), "spec": spec}
    for gone, known in ((False, 1), (True, 0)):
        changed(scene, lambda scene, gone=gone: scene.state.put_budget(budget, gone))
        assert scene.state.events.kinds == {EventKind.BUDGET_CHANGED}
        assert [len(one.expected) for one in scene.state.budgets.of(scene.task("p"))] == [1] * known


# ---- nodes


def test_a_node_that_goes_and_comes_back_has_its_pods() -> None:
    scene = Scene(m.node("n"), m.node("m"), group(), pods_of(nodeName="n"), m.pod("ended", nodeName="n"))
    ended = m.pod("ended", nodeName="n")
    scene.direct.put({**ended, "status": {"phase": "Succeeded"}})
    used = int(scene.state.queues.get("root").used[CPU])
    scene.direct.delete("Node", "n")
    assert EventKind.NODE_REMOVED in scene.state.events.kinds
    scene.begin(1)
    assert int(scene.state.queues.get("root").used[CPU]) == used == 2000
    scene.direct.put(m.node("n", 6))
    assert EventKind.NODE_ADDED in scene.state.events.kinds
    scene.begin(2)
    assert scene.free_cpu("n") == 4
    assert sorted(task.name for task in scene.state.stateful.assigned_to("n")) == ["g-0", "g-1"]


@pytest.mark.parametrize(
    ("node", "kinds"),
    [
        (m.node("n"), set()),
        (m.node("n", 5), {EventKind.NODE_CHANGED}),
        (m.node("n", labels={"a": "b"}), {EventKind.NODE_CHANGED}),
        (m.node("new"), {EventKind.NODE_ADDED}),
    ],
)
def test_g9_a_node_that_is_reported_again_unchanged_is_no_event(node: m.Obj, kinds: set[EventKind]) -> None:
    scene = small()
    changed(scene, lambda scene: scene.direct.put(node))
    assert scene.state.events.kinds == kinds


def test_m6_free_room_counts_on_nodes_that_take_pods_and_an_overcommitted_one_as_none() -> None:
    unready = m.node("u")
    unready["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    nodes = [m.node("n", 4), m.node("o", 2), m.node("c", unschedulable=True), unready, m.node("gone")]
    scene = Scene(nodes, m.pod("a", 1, nodeName="n"), m.pod("b", 3, nodeName="o"), group(), pods_of())
    scene.direct.delete("Node", "gone")
    scene.begin(1)
    assert int(scene.state.free_total()[CPU]) == 3000


# ---- queues that no gang names


def test_queues_are_kept_that_gangs_their_pods_or_their_demand_name() -> None:
    scene = Scene(m.node("n"), group("a", queue="of-gang"), m.pod("p", queue="of-pod"))
    for name in ("of-gang", "of-pod", "lost"):
        scene.state.queues.get(name)
    moved = scene.gang("a")
    scene.state.demand.set(moved, {CPU: 1}, {})
    moved.spec = msgspec.structs.replace(moved.spec, queue="new")  # what it demands is counted where it was
    scene.state.tidy_queues()
    assert {"of-gang", "of-pod", "lost"} & scene.state.queues.queues.keys() == {"of-gang", "of-pod"}


# ---- the audit


def miscount_free(state: State) -> None:
    state.nodes.free[CPU, 0] += 1


def miscount(field: str) -> Callable[[State], None]:
    def change(state: State) -> None:
        getattr(state.queues.get("default"), field)[CPU] += 1

    return change


def miscount_role(table: str) -> Callable[[State], None]:
    def change(state: State) -> None:
        counts = getattr(next(iter(state.gangs.values())), table)
        counts[""] = counts.get("", 0) + 1

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (miscount_free, "free resources of n are miscounted"),
        (miscount("used"), "used of default is miscounted"),
        (miscount("demand"), "demand of default is miscounted"),
        (miscount("enqueued"), "enqueued of default is miscounted"),
        (miscount_role("pending"), "miscounts role"),
        (miscount_role("occupied"), "miscounts role"),
        (miscount_role("held"), "miscounts role"),
        (lambda state: state.gang_table.priorities.update([7]), "priorities are miscounted"),
    ],
)
def test_a_recount_finds_what_was_miscounted(change: Callable[[State], None], message: str) -> None:
    """One pod runs, one is held, one waits, one is leaving, and one of another scheduler runs."""
    scene = Scene(m.node("n", 9), m.node("m"), group(minimum=3), pods_of(count=3), m.pod("f", scheduler="kai"))
    leaving = m.pod("r", nodeName="n")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for pod in (leaving, m.pod("g-0", group="g", nodeName="n"), m.pod("f", scheduler="kai", nodeName="n")):
        scene.direct.put(pod)
    scene.state.restore_hold(scene.task("g-1"), "m")
    scene.state.validate()
    change(scene.state)
    with pytest.raises(AssertionError, match=message):
        scene.state.validate()


# ---- gangs whose object changes


def moved(**fields: Any) -> tuple[Scene, set[EventKind]]:
    """The object of gang `g`, whose pods run on `n`, declares something else; the events."""
    queues = [m.queue("q"), m.queue("r")]
    scene = Scene(m.node("n"), m.node("m"), queues, group(minimum=2, queue="q"), pods_of(nodeName="n"))
    scene.state.events.clear()
    scene.state.dirty.clear()
    scene.direct.put(group(**{"minimum": 2, "queue": "q", **fields}))
    scene.state.validate()
    return scene, set(scene.state.events.kinds)


def test_v4_the_use_of_a_gang_moves_with_it_to_another_queue() -> None:
    scene, kinds = moved(queue="r")
    assert {name: int(scene.state.queues.get(name).used[CPU]) for name in "qr"} == {"q": 0, "r": 2000}
    assert EventKind.QUEUE_USES_LESS in kinds
    assert scene.gang().key in scene.state.dirty


@pytest.mark.parametrize(
    ("fields", "is_event"), [({}, False), ({"minimum": 1}, True), ({"roles": {"w": 1}}, True), ({"queue": "r"}, True)]
)
def test_g9_other_pods_may_be_evicted_when_the_minima_or_the_queue_of_a_gang_change(
    fields: dict[str, Any], is_event: bool
) -> None:
    scene, kinds = moved(**fields)
    assert (EventKind.VICTIMS_CHANGED in kinds) is is_event
    assert (scene.gang().key in scene.state.dirty) is is_event


def test_tasks_that_leave_are_known_until_they_are_gone() -> None:
    scene = Scene(m.node("n"), m.pod("runs", nodeName="n"), m.pod("waits"))
    assert scene.state.counts.releasing == {}
    for name, node in (("runs", "n"), ("waits", None)):
        leaving = m.pod(name, **({"nodeName": node} if node else {}))
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        scene.direct.put(leaving)
    assert [task.name for task in scene.state.counts.releasing.values()] == ["runs"], "the other has no room"
    scene.delete_pod("runs")
    assert scene.state.counts.releasing == {}


def test_a_pod_on_a_node_that_is_not_known_counts_there_when_the_node_comes() -> None:
    scene = Scene(m.node("m"), m.pod("a", nodeName="n"), m.pod("b", nodeName="n"), m.pod("c", nodeName="n"))
    scene.delete_pod("a")
    scene.direct.put(m.node("n"))
    scene.begin(1)
    assert scene.free_cpu("n") == 2
    for name in "bc":
        scene.delete_pod(name)
    assert scene.free_cpu("n") == 4
