"""D5, K1, K7: a whole-job gang in a group. Room for its later waves is claimed as the group starts, for each gang by
itself, and later waves take it by themselves."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

BOTH = ["default/g", "default/h"]
WHOLE = {"enbloc.dev/depends-on-gang": "true"}


def whole(name: str = "g", mode: str | None = None, **of_first: str) -> m.Obj:
    """Two waves of a pod each."""
    texts = m.koordinator_annotations(groups=BOTH, mode=mode)
    first, later = m.role("a", 1, **of_first), m.role("b", 1, depends_on={"name": ["a"]})
    return m.job(name, first, later, annotations=texts | WHOLE)


def mate(mode: str | None = None) -> list[m.Obj]:
    return m.koordinator_gang("h", 1, groups=BOTH, mode=mode)


def started(answer: Answer) -> dict[str, float]:
    return {name: at for name, (at, _) in answer.bound().items()}


@pytest.mark.parametrize("mode", [None, m.NON_STRICT])
@pytest.mark.parametrize("restarts", [(), ("9s",), ("15s",), ("21s",), ("9s", "15s", "21s")])
def test_d5_a_group_starts_once_all_waves_fit(restarts: tuple[str, ...], mode: str | None) -> None:
    """The second wave comes at 20 s. Meanwhile its room is kept from a pod that comes at 12 s."""
    docs = [m.node("n", 2), m.node("late", 1, at="9s"), whole(mode=mode, start_delay="11s"), *mate(mode)]
    answer = simulate(*docs, m.pod("x", at="12s"), [m.restart(at) for at in restarts], until="200s")
    assert started(answer) == {"g-a-0": 9.0, "h-0": 9.0, "g-b-0": 20.0}
    assert answer.evicted() == []
    assert not answer.waits("default/g")


@pytest.mark.parametrize("restarts", [(), ("9s",), ("15s",)])
def test_d5_two_whole_job_gangs_start_together(restarts: tuple[str, ...]) -> None:
    docs = [m.node("n", 3), m.node("late", 1, at="9s"), whole(start_delay="5s"), whole("h", start_delay="8s")]
    answer = simulate(*docs, [m.restart(at) for at in restarts], until="200s")
    assert started(answer) == {"g-a-0": 9.0, "h-a-0": 9.0, "g-b-0": 14.0, "h-b-0": 17.0}
    assert answer.evicted() == []


def test_d5_a_later_wave_of_a_group_without_its_room_starts_by_itself() -> None:
    """Its node is cordoned before the second wave comes: the claim ends, and the wave waits for another node (D3)."""
    cordon = m.patch("12s", "Node", "late", spec={"unschedulable": True})
    docs = [m.node("n", 2), m.node("late", 1, at="9s"), whole(start_delay="11s"), *mate(), cordon]
    taken = {name for name, node in simulate(*docs, until="11s").nodes().items() if node == "late"}
    assert not taken, "the room of the second wave is on that node"
    answer = simulate(*docs, m.node("other", 1, at="30s"), until="200s")
    assert started(answer) == {"g-a-0": 9.0, "h-0": 9.0, "g-b-0": 30.0}
    assert answer.evicted() == []


def test_d5_p1_a_group_preempts_for_all_waves() -> None:
    low = [m.pod(f"low-{n}", priority="low", stop_delay="5s") for n in range(3)]
    job, other = whole(start_delay="5s"), m.koordinator_gang("h", 1, groups=BOTH, priority="high", at="9s")
    job["spec"]["priorityClassName"] = "high"
    job["metadata"]["annotations"][f"{m.SIM}at"] = "9s"
    answer = simulate(m.HIGH_LOW, m.node("n", 3), low, job, *other, until="200s")
    assert [at for at, _ in answer.evicted()] == [9.0] * 3
    assert started(answer) == {
        **{one["metadata"]["name"]: 0.0 for one in low},
        "g-a-0": 14.0,
        "h-0": 14.0,
        "g-b-0": 19.0,
    }
