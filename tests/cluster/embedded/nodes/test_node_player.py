from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enbloc.api.meta import Obj, Ref, condition_of
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes.node_player import NodePlayer
from enbloc.cluster.embedded.nodes.pod_script import read_script
from enbloc.units import SECOND
from support.embedded_store import POD, START, Clock, make_store, node, pod


class Stage:
    """A store with a node and its player, and a log of what the pods did and when."""

    def __init__(self, *nodes: Obj) -> None:
        self.store, self.clock = make_store()
        for made in nodes or (node(),):
            self.store.create(made)
        self.player = NodePlayer(self.store)
        self._watch = self.store.watch(["Pod"], self.store.version)
        self.log: list[tuple[float, str, str]] = []
        self._phases: dict[str, str] = {}

    def play(self, *pods: Obj, on: str = "n1") -> Stage:
        for made in pods:
            self.store.create(made)
            self.store.bind("default", made["metadata"]["name"], "", on)
        return self.until(0)

    def until(self, second: float) -> Stage:
        """Everything up to that many seconds after the start."""
        end = START + int(second * SECOND)
        self.player.run(self.clock.now)
        self._note()
        while (due := self.player.due()) is not None and due <= end:
            assert due >= self.clock.now
            self.clock.now = due
            self.player.run(due)
            self._note()
        self.clock.now = max(self.clock.now, end)
        return self

    def _note(self) -> None:
        at = (self.clock.now - START) / SECOND
        for event in self._watch.drain():
            name = event.obj["metadata"]["name"]
            phase = "gone" if event.type == "DELETED" else event.obj["status"]["phase"]
            if self._phases.get(name) != phase:
                self.log.append((at, name, phase))
            self._phases[name] = phase

    def pod(self, name: str = "p") -> Obj:
        found = self.store.get("Pod", "default", name)
        assert found is not None
        return found


def container(made: Obj) -> dict[str, Any]:
    status: dict[str, Any] = made["status"]["containerStatuses"][0]
    return status


def test_a_bound_pod_runs_and_is_ready() -> None:
    stage = Stage().play(pod())
    status = stage.pod()["status"]
    assert status["phase"] == "Running"
    assert status["startTime"] == "2026-01-01T00:00:00Z"
    assert status["hostIP"]
    assert status["podIP"]
    for kind in ("PodScheduled", "Initialized", "Ready", "ContainersReady"):
        found = condition_of(stage.pod(), kind)
        assert found is not None
        assert found["status"] == "True"
    assert container(stage.pod())["state"] == {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    assert stage.player.due() is None  # for ever


def test_start_delay_and_run_time() -> None:
    timed = pod(annotations={"start-delay": "5s", "run-time": "1m"}, restartPolicy="Never")
    stage = Stage().play(timed).until(1000)
    assert stage.log == [(0, "p", "Pending"), (5, "p", "Running"), (65, "p", "Succeeded")]
    ended = container(stage.pod())["state"]["terminated"]
    assert (ended["exitCode"], ended["startedAt"], ended["finishedAt"]) == (
        0,
        "2026-01-01T00:00:05Z",
        "2026-01-01T00:01:05Z",
    )
    ready = condition_of(stage.pod(), "Ready")
    assert ready is not None
    assert (ready["status"], ready["reason"]) == ("False", "PodCompleted")


def test_a_run_of_no_time_still_ran() -> None:
    stage = Stage().play(pod(annotations={"run-time": "0s"}, restartPolicy="Never"))
    assert [phase for _, _, phase in stage.log] == ["Pending", "Running", "Succeeded"]


def test_annotations_of_a_running_pod_that_are_changed_count_from_then_on() -> None:
    stage = Stage().play(pod(restartPolicy="Never")).until(10)

    def annotate(**notes: str) -> None:
        keyed = {f"sim.enbloc.dev/{name.replace('_', '-')}": value for name, value in notes.items()}
        stage.store.patch(Ref("Pod", "default", "p"), {"metadata": {"annotations": keyed}})

    annotate(run_time="25s")
    stage.until(20)
    assert stage.pod()["status"]["phase"] == "Running"
    annotate(run_time="1h")
    stage.until(30)
    assert stage.pod()["status"]["phase"] == "Running"
    annotate(run_time="0s", exit_code="7")
    stage.until(40)
    assert stage.log[-1] == (30, "p", "Failed"), "its new time is over: it exits at once, not in the past"
    assert container(stage.pod())["state"]["terminated"]["exitCode"] == 7


def test_a_failure_says_its_exit_code() -> None:
    stage = Stage().play(pod(annotations={"run-time": "1s", "exit-code": "3"}, restartPolicy="Never")).until(9)
    assert stage.pod()["status"]["phase"] == "Failed"
    assert container(stage.pod())["state"]["terminated"]["exitCode"] == 3


def test_attempts_are_counted_over_recreated_pods() -> None:
    stage = Stage()
    codes = []
    for attempt in range(4):
        stage.play(pod(annotations={"run-time": "1s", "exit-code": "1,2,0"}, restartPolicy="Never"))
        stage.until(10 * (attempt + 1))
        codes.append(container(stage.pod())["state"]["terminated"]["exitCode"])
        stage.store.delete(POD)
    assert codes == [1, 2, 0, 0]


def test_container_restarts_count_as_attempts() -> None:
    stage = (
        Stage().play(pod(annotations={"run-time": "1s", "exit-code": "1,1,0"}, restartPolicy="OnFailure")).until(999)
    )
    assert stage.log[-1] == (13, "p", "Succeeded")  # ran 0-1, at once 1-2, after 10 s 12-13
    assert container(stage.pod())["restartCount"] == 2
    assert stage.player.most_restarted() == ("default", "p", 2)


def test_back_off_grows_to_five_minutes_and_is_shown() -> None:
    stage = Stage().play(pod(annotations={"run-time": "0s", "exit-code": "1"}))
    starts = [0.0]
    for _ in range(8):
        resting = container(stage.pod())
        assert resting["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
        assert resting["lastState"]["terminated"]["exitCode"] == 1
        assert stage.pod()["status"]["phase"] == "Running"
        due = stage.player.due()
        assert due is not None
        starts.append((due - START) / SECOND)
        stage.until(starts[-1])
    waits = [after - before for before, after in pairwise(starts)]
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300]


def test_a_good_run_forgets_the_back_off() -> None:
    stage = Stage().play(pod(annotations={"run-time": "10m"})).until(1800)
    assert container(stage.pod())["restartCount"] == 3  # each at once
    assert container(stage.pod())["state"] == {"running": {"startedAt": "2026-01-01T00:30:00Z"}}


def test_the_deadline_ends_a_pod() -> None:
    stage = Stage().play(pod(activeDeadlineSeconds=30, annotations={"start-delay": "5s"})).until(99)
    assert stage.log[-1] == (30, "p", "Failed")
    assert stage.pod()["status"]["reason"] == "DeadlineExceeded"
    assert container(stage.pod())["state"]["terminated"]["exitCode"] == 137


def test_a_deadline_set_later_counts_too() -> None:
    stage = Stage().play(pod(activeDeadlineSeconds=30)).until(10)
    stage.store.patch(POD, {"spec": {"activeDeadlineSeconds": 20}})
    stage.until(99)
    assert stage.log[-1] == (20, "p", "Failed")


@pytest.mark.parametrize(
    ("delay", "grace_s", "gone_at"), [("", None, 10), ("7s", None, 17), ("7s", 0, 10), ("60s", 30, 70)]
)
def test_deletion_takes_the_stop_delay(delay: str, grace_s: int | None, gone_at: float) -> None:
    stage = Stage().play(pod(annotations={"stop-delay": delay, "run-time": "12s"} if delay else None)).until(10)
    stage.store.delete(POD, grace_s=grace_s)
    stage.until(99)
    assert stage.log[-1] == (gone_at, "p", "gone")


def test_finalizers_keep_the_object_of_a_pod_that_was_stopped() -> None:
    held = pod()
    held["metadata"]["finalizers"] = ["x.io/f"]
    stage = Stage(node(cpu="1")).play(held).until(1)
    stage.store.delete(POD)
    stage.until(2)
    assert stage.pod()["status"]["phase"] == "Failed"
    assert stage.player.due() is None
    stage.store.patch(POD, {"metadata": {"finalizers": None}})
    assert stage.store.get(*POD) is None


@pytest.mark.parametrize(
    ("asked", "reason"),
    [({"cpu": "3"}, "OutOfcpu"), ({"memory": "2Gi"}, "OutOfmemory"), ({"nvidia.com/gpu": "1"}, "OutOfnvidia.com/gpu")],
)
def test_a_node_refuses_what_does_not_fit(asked: dict[str, str], reason: str) -> None:
    large = pod()
    large["spec"]["containers"][0]["resources"] = {"requests": asked}
    stage = Stage(node(cpu="2", memory="1Gi")).play(large)
    assert (stage.pod()["status"]["phase"], stage.pod()["status"]["reason"]) == ("Failed", reason)
    assert "containerStatuses" not in stage.pod()["status"]


def test_room_is_given_back_when_a_pod_has_ended_or_gone() -> None:
    stage = Stage(node(cpu="1", pods="1"))
    stage.play(pod("a", cpu="1", annotations={"run-time": "5s"}, restartPolicy="Never"), pod("b"))
    assert stage.pod("b")["status"]["reason"] == "OutOfpods"
    stage.until(5).play(pod("c", cpu="1"))
    stage.store.delete(Ref("Pod", "default", "c"))
    stage.until(6).play(pod("d", cpu="1"))
    assert stage.pod("d")["status"]["phase"] == "Running"


def test_a_failed_node_loses_its_pods_and_takes_none_until_it_is_back() -> None:
    stage = Stage().play(pod(annotations={"stop-delay": "1h"})).until(5)
    watch = stage.store.watch(["Pod"], stage.store.version)
    stage.player.fail_node("n1")
    last = watch.drain()[-1]
    target = condition_of(last.obj, "DisruptionTarget")
    assert (last.type, target and target["reason"]) == ("DELETED", "NodeLost")
    failed = stage.store.get("Node", "", "n1")
    assert failed is not None
    ready = condition_of(failed, "Ready")
    assert ready is not None
    assert ready["status"] == "False"
    assert {taint["effect"] for taint in failed["spec"]["taints"]} == {"NoSchedule", "NoExecute"}
    stage.play(pod("q"))
    assert stage.pod("q")["status"]["phase"] == "Pending"
    stage.until(9)
    stage.player.recover_node("n1")
    stage.until(10)
    assert (9, "q", "Running") in stage.log
    recovered = stage.store.get("Node", "", "n1")
    assert recovered is not None
    assert "taints" not in recovered["spec"]


def test_deleting_a_pod_on_a_node_that_does_not_answer() -> None:
    stage = Stage().play(pod(annotations={"stop-delay": "1h"}))
    not_ready = [{"type": "Ready", "status": "Unknown"}]
    stage.store.patch(Ref("Node", "", "n1"), {"status": {"conditions": not_ready}}, "status")
    stage.until(3)
    stage.store.delete(POD)
    stage.until(4)
    assert stage.log[-1] == (3, "p", "gone")


def test_pods_of_a_node_that_is_no_more_are_collected() -> None:
    stage = Stage().play(pod("a"), pod("b", annotations={"run-time": "1s"}, restartPolicy="Never")).until(2)
    stage.store.delete(Ref("Node", "", "n1"))
    stage.play(pod("c"), on="nowhere").until(3)
    assert stage.store.list("Pod")[0] == []


def test_a_node_may_come_after_its_pods_in_the_same_instant() -> None:
    stage = Stage()
    stage.store.create(pod(nodeName="n2"))
    stage.player.observe()
    stage.store.create(node("n2"))
    stage.until(0)
    assert stage.pod()["status"]["phase"] == "Running"


def test_a_node_made_anew_at_once_still_holds_its_pods() -> None:
    stage = Stage(node(cpu="1")).play(pod("a", cpu="1"))
    stage.store.delete(Ref("Node", "", "n1"))
    stage.store.create(node(cpu="1"))
    stage.play(pod("b", cpu="1"))
    assert stage.pod("a")["status"]["phase"] == "Running"
    assert stage.pod("b")["status"]["reason"] == "OutOfcpu"


@pytest.mark.parametrize(("policy", "phase", "restarts"), [("Never", "Failed", 0), ("Always", "Running", 1)])
def test_fail_pod_honours_the_restart_policy(policy: str, phase: str, restarts: int) -> None:
    stage = Stage().play(pod(restartPolicy=policy)).until(5)
    stage.player.fail_pod("default", "p", 42)
    assert stage.pod()["status"]["phase"] == phase
    status = container(stage.pod())
    assert status["restartCount"] == restarts
    ended = status["state" if policy == "Never" else "lastState"]["terminated"]
    assert ended["exitCode"] == 42


def test_fail_pod_refuses_pods_that_do_not_run() -> None:
    stage = Stage()
    stage.store.create(pod())
    for name, code in (("p", 409), ("nobody", 404)):
        with pytest.raises(Refused) as caught:
            stage.player.fail_pod("default", name)
        assert caught.value.code == code
    for act in (stage.player.fail_node, stage.player.recover_node):
        with pytest.raises(Refused) as caught:
            act("nobody")
        assert caught.value.code == 404


def test_fail_pod_of_a_pod_that_is_still_starting() -> None:
    stage = Stage().play(pod(annotations={"start-delay": "1m"}, restartPolicy="Never")).until(5)
    stage.player.fail_pod("default", "p")
    assert stage.until(99).pod()["status"]["phase"] == "Failed"


@pytest.mark.parametrize(
    "annotations",
    [{"run-time": "soon"}, {"start-delay": "-5s"}, {"stop-delay": "5"}, {"exit-code": "1,x"}, {"exit-code": "-1"}],
)
def test_bad_annotations_count_as_absent_and_are_reported(annotations: dict[str, str]) -> None:
    stage = Stage().play(pod(annotations=annotations)).until(5)
    assert stage.pod()["status"]["phase"] == "Running"
    (event,) = stage.store.list("Event")[0]
    assert (event["type"], event["reason"]) == ("Warning", "BadAnnotation")
    assert event["message"].startswith(f"sim.enbloc.dev/{next(iter(annotations))}: ")


def test_a_player_that_comes_later_finds_what_is_there() -> None:
    store, clock = make_store()
    store.create(node())
    store.create(pod(nodeName="n1"))
    player = NodePlayer(store)
    assert player.due() == clock.now
    player.run(clock.now)
    assert store.list("Pod")[0][0]["status"]["phase"] == "Running"


def test_a_pod_that_ran_before_its_player_came_ends_when_it_would_have() -> None:
    stage = Stage().play(
        pod("p", annotations={"run-time": "60s", "exit-code": "1,0"}, restartPolicy="Never"),
        pod("dead", activeDeadlineSeconds=50),
    )
    stage.until(40)
    began, address = stage.pod()["status"]["startTime"], stage.pod("dead")["status"]["podIP"]
    stage.player.close()
    stage.player = NodePlayer(stage.store)  # as after a restart with --data
    stage.until(45)
    assert stage.pod()["status"]["startTime"] == began
    stage.play(pod("q"))
    assert stage.pod("q")["status"]["podIP"] not in (address, stage.pod()["status"]["podIP"])
    stage.until(200)
    assert [entry for entry in stage.log if entry[1] != "q"][-2:] == [(50.0, "dead", "Failed"), (60.0, "p", "Failed")]


def test_a_run_that_ended_while_no_kubelet_ran_has_ended() -> None:
    stage = Stage().play(pod("p", annotations={"run-time": "60s"}, restartPolicy="Never"))
    stage.until(10)
    stage.player.close()
    stage.clock.now = START + 100 * SECOND
    stage.player = NodePlayer(stage.store)
    stage.until(100)
    assert stage.log[-1] == (100.0, "p", "Succeeded")


def test_plain_pods_share_one_script() -> None:
    assert read_script(pod("a")) is read_script(pod("b"))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["create", "bind", "delete", "fail-pod", "fail-node", "recover-node", "drop-node", "wait"]),
            st.sampled_from("abc"),
        ),
        max_size=30,
    )
)
def test_whatever_happens_room_is_accounted_for(steps: list[tuple[str, str]]) -> None:
    store, clock = make_store()
    player = NodePlayer(store)
    for step, name in steps:
        try:
            _do(store, clock, player, step, name)
        except Refused:
            pass
        player.run(clock.now)
        due = player.due()
        assert due is None or due > clock.now
        held: dict[str, int] = {}
        for made in store.list("Pod")[0]:
            status = made["status"]
            if status["phase"] == "Running":
                held[made["spec"]["nodeName"]] = held.get(made["spec"]["nodeName"], 0) + 1
        for node_name, its_node in player._pool._nodes.items():
            assert its_node.used.get("cpu", 0) == held.get(node_name, 0) * 10**9
            assert its_node.used.get("cpu", 0) <= its_node.allocatable["cpu"]


def _do(store: Store, clock: Clock, player: NodePlayer, step: str, name: str) -> None:
    match step:
        case "create":
            if store.get("Node", "", "n1") is None:
                store.create(node("n1", cpu="2"))
            annotations = {"run-time": "7s", "exit-code": "1,0", "stop-delay": "3s"}
            store.create(pod(name, cpu="1", annotations=annotations, restartPolicy="OnFailure"))
        case "bind":
            store.bind("default", name, "", "n1")
        case "delete":
            store.delete(Ref("Pod", "default", name))
        case "fail-pod":
            player.fail_pod("default", name)
        case "fail-node":
            player.fail_node("n1")
        case "recover-node":
            player.recover_node("n1")
        case "drop-node":
            store.delete(Ref("Node", "", "n1"))
        case "wait":
            clock.pass_s(2)
