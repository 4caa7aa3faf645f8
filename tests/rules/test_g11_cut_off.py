"""G11: a decision that was carried out only in part. The scheduler is killed between two Bindings, or some are refused,
and what comes after it sees only what the API knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from enbloc.api.writes import BindPod, Refused, Write
from enbloc.config import Config, scheduler_names
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.runtime.control_plane import ControlPlane
from enbloc.sim.simulation import Records
from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

COMMITTED = "enbloc.dev/committed"
DECISION = "enbloc.dev/decision"


class Killed(BaseException):
    """The scheduler's process is gone."""


class Wire:
    """The cluster as the scheduler sees it, over a wire that can fail: `refuse` and `kill` look at each Binding by its
    number and pod."""

    def __init__(
        self,
        refuse: Callable[[int, str], bool] = lambda number, name: False,
        kill: Callable[[int, str], bool] = lambda number, name: False,
        aftermath: tuple[m.Obj, ...] = (),
    ) -> None:
        self.refuse, self.kill, self.aftermath = refuse, kill, aftermath
        self.sent: list[BindPod] = []
        self.taken: list[BindPod] = []
        self.kills = 0

    def connect(self, store: Any, config: Config) -> Plane:
        return Plane(self, store, config)


class _Cut:
    def __init__(self, wire: Wire, store: Any) -> None:
        self._wire, self._store = wire, store
        self.list, self.watch = store.list, store.watch

    def execute(self, write: Write) -> m.Obj | None:
        wire = self._wire
        if isinstance(write, BindPod):
            number = len(wire.sent)
            if wire.kill(number, write.name):
                raise Killed
            wire.sent.append(write)
            if wire.refuse(number, write.name):
                raise Refused(500, "InternalError", "the API server had a bad moment")
            wire.taken.append(write)
        done: m.Obj | None = self._store.execute(write)
        return done


class Plane:
    """A control plane that comes back after it was killed; something may happen meanwhile."""

    def __init__(self, wire: Wire, store: Any, config: Config) -> None:
        self._wire, self._store, self._config = wire, store, config
        self.inner = self._make()

    def _make(self) -> ControlPlane:
        names = scheduler_names(self._config, alone=True)
        return ControlPlane(_Cut(self._wire, self._store), self._config, names, simulated_key_pair)

    def schedule(self, now: int) -> bool:
        try:
            return self.inner.schedule(now)
        except Killed:
            self._wire.kills += 1
            for obj in self._wire.aftermath:
                self._store.create(obj)
            self.inner.close()
            self.inner = self._make()
            return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def once_at(position: int) -> Callable[[int, str], bool]:
    """The Binding of that number, the first time it is tried."""
    seen: list[int] = []

    def now(number: int, name: str) -> bool:
        hit = number == position and not seen
        seen.extend([number] if hit else [])
        return hit

    return now


def foreign(cpu: int, **more: Any) -> m.Obj:
    return m.pod("foreign", cpu, scheduler="other", nodeName="n", **more)


def evicted(answer: Answer) -> list[tuple[str, float]]:
    return sorted((line["name"], line["t"]) for line in answer.lines("evicted"))


def marks(answer: Answer) -> dict[str, str]:
    return {
        one["metadata"]["name"]: one["metadata"]["annotations"][COMMITTED]
        for one in answer.all("Pod")
        if COMMITTED in (one["metadata"].get("annotations") or {})
    }


@pytest.mark.parametrize("killed_at", range(5))
@pytest.mark.parametrize("shape", ["group", "job"])
def test_g11_killed_at_any_binding_it_is_completed_and_nothing_is_bound_twice(killed_at: int, shape: str) -> None:
    wire = Wire(kill=once_at(killed_at))
    docs = m.gang("a", 5) if shape == "group" else [m.job("a", m.role("w", 5))]
    answer = simulate(m.node("n", 5), docs, m.pod("z", 1, at="1s"), plane=wire.connect)
    bound = [name for name in answer.order() if name.startswith("a")]
    assert len(bound) == len(set(bound)) == 5
    assert set(answer.times("a")) == {0.0}
    assert wire.kills == 1
    assert answer.at("z") is None
    assert not answer.lines("evicted")


def test_g11_the_mark_rides_on_the_last_binding_of_the_minima() -> None:
    wire = Wire()
    answer = simulate(m.node("n", 9), m.job("j", m.role("a", 3, 2), m.role("b", 2, 1)), plane=wire.connect)
    assert [COMMITTED in bind.annotations for bind in wire.sent] == [False, False, True, True, True]
    assert len({bind.annotations[DECISION] for bind in wire.sent[:3]}) == 1
    assert all(bind.uid for bind in wire.sent)
    assert len(marks(answer)) == 3


@pytest.mark.parametrize("refused", range(4))
def test_g11_the_last_binding_is_sent_only_after_the_others_were_taken(refused: int) -> None:
    wire = Wire(refuse=once_at(refused))
    answer = simulate(m.node("n", 4), m.gang("a", 4), plane=wire.connect)
    assert len(answer.bound("a")) == len(wire.taken) == 4
    assert set(answer.times("a")) == {0.0}
    committed = [COMMITTED in bind.annotations for bind in wire.taken]
    assert committed == [False, False, False, True]
    first_mark = next(number for number, bind in enumerate(wire.sent) if COMMITTED in bind.annotations)
    assert first_mark >= 3
    assert len(wire.sent) == 5


def partial_gangs(*docs: Any, room: int = 4, taken: m.Obj, until: str | None = None, **more: Any) -> Answer:
    """A gang `a` of four was bound by half when the scheduler died; `taken` took room before it was back."""
    wire = Wire(kill=once_at(2), aftermath=(taken,))
    return simulate(m.node("n", room), m.gang("a", 4), *docs, plane=wire.connect, until=until, **more)


def test_g11_it_is_completed_before_anyone_of_equal_or_lower_priority_gets_its_nodes() -> None:
    low = m.priority_class("low", -5)
    answer = partial_gangs(
        low,
        m.gang("b", 1, at="5s"),
        m.pod("p", 1, at="6s"),
        m.gang("c", 1, at="7s", priority="low"),
        m.pod("free", None, at="8s"),
        taken=foreign(1, run_time="30s"),
    )
    assert answer.times("a") == [0.0, 0.0, 30.0, 30.0]
    assert not answer.bound("b")
    assert not answer.bound("c")
    assert answer.at("p") is None
    assert answer.at("free") == 30.0
    assert not answer.lines("evicted")


def test_g11_gangs_that_waited_for_it_say_so() -> None:
    answer = partial_gangs(m.gang("b", 1, at="5s"), taken=foreign(1, run_time="30s"), until="20s")
    assert "partially bound gang" in answer.why("default/b")
    assert "Insufficient cpu" in answer.why("default/a")


def test_g11_a_higher_priority_need_not_wait_for_it() -> None:
    answer = partial_gangs(
        m.priority_class("high", 1000),
        m.gang("b", 1, at="5s", priority="high"),
        taken=foreign(1, run_time="30s"),
        until="40s",
    )
    assert answer.at("b-0") == 5.0


def test_g11_nodes_that_it_cannot_use_are_not_kept() -> None:
    other = m.node("other", 4, taints=[{"key": "k", "effect": "NoSchedule"}])
    answer = partial_gangs(other, m.pod("p", 1, at="5s", tolerations=[{"operator": "Exists"}]), taken=foreign(1))
    assert answer.bound("p")["p"] == (5.0, "other")


@pytest.mark.parametrize("timeout, seconds", [(None, 60.0), ("10s", 10.0)])
def test_g11_in_vain_its_members_are_evicted_in_time_and_others_may_go(timeout: str | None, seconds: float) -> None:
    config = {"partialGangTimeout": timeout} if timeout else None
    answer = partial_gangs(m.gang("b", 1, at="5s"), taken=foreign(1), config=config)
    assert evicted(answer) == [("a-0", seconds), ("a-1", seconds)]
    assert answer.at("b-0") == seconds
    assert {one["metadata"]["name"] for one in answer.all("Pod", "a")} == {"a-2", "a-3"}


def test_g11_a_job_starts_over() -> None:
    wire = Wire(kill=once_at(2), aftermath=(foreign(1, run_time="100s"),))
    answer = simulate(m.node("n", 4), m.job("a", m.role("w", 4)), plane=wire.connect)
    assert [t for _, t in evicted(answer)] == [60.0, 60.0]
    assert answer.times("a") == [0.0, 0.0] + [100.0] * 4


def test_g11_after_it_gave_up_every_gang_it_kept_out_is_woken() -> None:
    """The node that `b` wants has not changed; only its reservation ended."""
    answer = partial_gangs(
        m.node("m", "500m", labels={"m": "yes"}),
        m.gang("b", 1, cpu="100m", at="5s", nodeSelector={"m": "yes"}),
        taken=foreign(1),
    )
    assert answer.at("b-0") == 60.0


def test_g11_after_it_was_completed_every_gang_it_kept_out_is_woken() -> None:
    """`b`, in a queue that is served first, is kept out in the very cycle in which `a` is completed."""
    wire = Wire(kill=once_at(2), aftermath=(foreign(2, run_time="30s"),))
    answer = simulate(
        m.queue("first", priority=9),
        m.queue("second"),
        m.node("n", 5),
        m.gang("a", 4, queue="second"),
        m.gang("b", 1, queue="first", at="5s"),
        plane=wire.connect,
    )
    assert answer.times("a") == [0.0, 0.0, 30.0, 30.0]
    assert answer.at("b-0") == 30.0


def test_g11_two_that_were_cut_off_do_not_wait_for_each_other() -> None:
    refused: set[str] = set()

    def first_time(number: int, name: str) -> bool:
        hit = name in ("a-1", "b-1") and name not in refused
        refused.update([name] if hit else [])
        return hit

    answer = simulate(m.node("n", 6), m.gang("a", 3), m.gang("b", 3), plane=Wire(refuse=first_time).connect)
    assert answer.times() == [0.0] * 6
    assert not answer.lines("evicted")


def test_g11_a_committed_gang_that_lost_members_is_not_evicted() -> None:
    answer = simulate(
        m.node("n", 4),
        m.job("a", m.role("w", 4)),
        m.step("10s", "delete", "Pod", "a-w-3"),
        m.step("10s", "delete", "Pod", "a-w-0"),
        foreign(2, at="10s"),
        m.restart("11s"),
        m.gang("b", 1, at="12s"),
        m.node("m", 2, at="500s"),
    )
    assert not answer.lines("evicted")
    assert answer.times("a-w-0")[1:] == answer.times("a-w-3")[1:] == [500.0]


def _pod_group(at: str | None = None) -> list[m.Obj]:
    return m.gang("a", 3, at=at)


def _annotations(at: str | None = None) -> list[m.Obj]:
    return m.koordinator_gang("a", 3, at=at)


def _scheduling_spec(at: str | None = None) -> list[m.Obj]:
    pods = [m.pod(f"a-{index}", at=at) for index in range(3)]
    return [m.scheduling_spec("c", 3), *m.owned(*pods)]


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("gang", [_pod_group, _annotations, _scheduling_spec])
def test_g11_a_committed_gang_whose_marked_pod_goes_while_no_scheduler_runs_is_not_evicted(
    gang: Callable[..., list[m.Obj]], again: bool
) -> None:
    """Pods are lost and the scheduler restarts in one instant: what is left has the decision's id and no mark."""
    lost = ("a-0", "a-2")  # the last one of the decision carries the mark
    recreated = [
        obj | {"metadata": obj["metadata"] | {"name": f"new-{obj['metadata']['name']}"}}
        for obj in gang("10s")
        if again and obj["metadata"]["name"] in lost
    ]
    answer = simulate(
        m.node("n", 3),
        gang(),
        *(m.step("10s", "delete", "Pod", name) for name in lost),
        foreign(2, at="10s"),
        m.restart("10s"),
        recreated,
        m.node("m", 2, at="500s"),
    )
    assert not answer.lines("evicted")
    assert answer.times("new-") == ([500.0, 500.0] if again else [])


@pytest.mark.parametrize("gang", [_pod_group, _annotations, _scheduling_spec])
def test_g11_a_member_that_ended_shows_that_its_gang_was_committed(gang: Callable[..., list[m.Obj]]) -> None:
    """One member succeeds, the others are lost while the scheduler restarts: those that come for them are ordinary pods
    (G7), and do not wait until the minimum exists again."""
    members = gang()
    for obj in members:
        if obj["metadata"]["name"] == "a-1":
            obj["metadata"].setdefault("annotations", {})["sim.enbloc.dev/run-time"] = "5s"
    again = [obj for obj in gang("20s") if obj["metadata"]["name"] == "a-0"]
    answer = simulate(
        m.node("n", 3),
        members,
        *(m.step("10s", "delete", "Pod", name) for name in ("a-0", "a-2")),
        m.restart("10s"),
        [obj | {"metadata": obj["metadata"] | {"name": "new-a-0"}} for obj in again],
    )
    assert answer.at("new-a-0") == 20.0


@pytest.mark.parametrize("minimum", [None, 5])
def test_g11_d3_a_wave_that_was_never_bound_is_not_committed_by_what_an_earlier_one_lost(minimum: int | None) -> None:
    """The pods of `b` wait for room for all of them. The node of one pod of `a` fails while the scheduler restarts:
    that `a` was committed says nothing of `b`, none of whose pods starts alone."""
    later = {**m.role("b", 4, cpu=3), "dependsOn": {"name": ["a"]}}
    answer = simulate(
        m.node("n", 4),
        m.node("o", 2),
        m.job("j", m.role("a", 2, cpu=None, start_delay="3s"), later, minimum=minimum),
        m.step("10s", "fail-node", target={"name": "o"}),
        m.restart("10s"),
        config={"admission": {"minAvailable": "relaxed"}} if minimum else None,
    )
    assert answer.lines("evicted", name="j-a-1")
    assert not answer.bound("j-b")


def test_g11_the_mark_outlives_the_pod_that_carried_it() -> None:
    wire = Wire()
    answer = simulate(m.node("n", 3), m.gang("a", 3), m.step("10s", "delete", "Pod", "a-2"), plane=wire.connect)
    assert set(marks(answer)) == {"a-0"}


def test_g11_a_gang_whose_minima_are_bound_is_satisfied_without_a_mark() -> None:
    preset = [m.pod(f"a-{i}", group="a", nodeName="n") for i in range(2)]
    answer = simulate(
        m.node("n", 4), m.gang("a", 0, minimum=2), preset, m.restart("5s"), m.pod("a-9", group="a", at="10s")
    )
    assert answer.at("a-9") == 10.0
    assert not answer.lines("evicted")


def test_g11_members_bound_by_others_are_no_decision_of_ours() -> None:
    answer = simulate(
        m.node("n", 2), m.gang("a", 2, minimum=3), m.pod("preset", group="a", nodeName="n"), m.gang("b", 1, at="5s")
    )
    assert not answer.lines("evicted")
    assert answer.at("b-0") == 5.0


def test_g11_a_pod_that_was_recreated_under_its_name_is_not_bound_by_an_old_decision() -> None:
    """The API server refuses a Binding that names another UID; the new pod is then bound by a decision of its own."""
    seen: list[str] = []

    def refuse(number: int, name: str) -> bool:
        seen.append(name)
        return len(seen) == 1

    wire = Wire(refuse=refuse)
    answer = simulate(m.node("n", 2), m.gang("a", 2), plane=wire.connect)
    pods = {one["metadata"]["name"]: one["metadata"]["uid"] for one in answer.all("Pod")}
    assert {bind.name: bind.uid for bind in wire.taken} == pods


def test_g11_a_gang_that_is_deleted_half_way_keeps_no_gang_out() -> None:
    """Its pods and its group go; the node that `b` wants has not changed."""
    gone = [m.step("20s", "delete", "PodGroup", "a"), *(m.step("20s", "delete", "Pod", f"a-{i}") for i in range(4))]
    answer = partial_gangs(
        m.node("m", "500m", labels={"m": "yes"}),
        m.gang("b", 1, cpu="100m", at="5s", nodeSelector={"m": "yes"}),
        gone,
        taken=foreign(1),
    )
    assert answer.at("b-0") == 20.0
    assert not answer.lines("evicted")


@pytest.mark.parametrize(
    "change",
    [
        [m.step("10s", "patch", "PodGroup", "a", patch={"spec": {"priorityClassName": ""}})],
        [m.step("10s", "delete", "Pod", "a-1")],
        [m.step("10s", "delete", "Pod", "a-1"), m.pod("a-1", 9, group="a", at="10s", nodeSelector={"at": "n"})],
    ],
    ids=["of lower priority", "without pods that wait", "elsewhere"],
)
def test_g11_nodes_that_a_gang_needs_no_more_are_for_others_at_once(change: list[m.Obj]) -> None:
    """Half of `a` is bound by a decision of ours; the other half needs `m`."""
    group, *_ = m.gang("a", 2, group_priority="high")
    half = m.pod("a-0", group="a", nodeName="n", annotations={DECISION: "1"})
    other = m.pod("a-1", 2, group="a", nodeSelector={"at": "m"})
    answer = simulate(
        m.priority_class("high", 1000),
        m.priority_class("mid", 500),
        m.node("n", labels={"at": "n"}),
        m.node("m", 1, labels={"at": "m"}),
        group,
        half,
        other,
        m.pod("b", priority="mid", at="1s", nodeSelector={"at": "m"}),
        change,
        until="30s",
        records=Records.TRUSTED,
    )
    assert answer.at("b") == 10.0


def test_g11_nodes_may_be_kept_for_a_gang_that_was_cut_off_and_reserved_for_another() -> None:
    """Both are asked of one and the same pod."""
    reserve = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 1, "reservedNodePercent": 100}}
    group, first, *rest = m.gang("cut", 3, cpu=2, at="10s")
    first["spec"]["nodeName"] = "n"
    first["metadata"]["annotations"][DECISION] = "1"
    answer = simulate(
        m.node("n"),
        m.node("m"),
        m.pod("a", 2, run_time="15s"),
        m.pod("b", 2, run_time="15s"),
        m.pod("big", 4),
        group,
        first,
        *rest,
        m.pod("s", 1, at="11s"),
        config={"actions": ["enqueue", "allocate", reserve]},
        until="12s",
        records=Records.TRUSTED,
    )
    assert answer.lines("reserved", "big")
    assert answer.at("s") is None
