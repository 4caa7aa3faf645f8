"""T7: preempt, reclaim and reserve know domains: a domain is freed or reserved, not scattered nodes."""

from __future__ import annotations

from typing import Any

from support import manifests as m
from support import racks as r
from support.simulation import simulate

Obj = dict[str, Any]
HIGH = m.priority_class("high", 1000)


def fillers(rack: str, *sizes: int, **fields: Any) -> list[Obj]:
    """Single pods that fill nodes of a rack."""
    return [m.pod(f"f-{rack}{n}", cpu, nodeSelector={r.RACK: rack}, **fields) for n, cpu in enumerate(sizes)]


def important(name: str, count: int, **fields: Any) -> list[Obj]:
    gang = r.native(name, count, priority="high", **fields)
    gang[0]["spec"]["priorityClassName"] = "high"
    return gang


def test_t7_one_rack_is_freed() -> None:
    """Two nodes are full in each rack: four scattered victims would make as much room as two in one rack."""
    full = [*fillers("a", 4, 4), *fillers("b", 4, 4)]
    answer = simulate(HIGH, r.nodes({"a": 2, "b": 2}), full, important("g", 8, at="5s"), until="60s")
    assert len(r.racks_of(answer.nodes("g-"))) == 1
    assert len({name[:3] for _, name in answer.evicted()}) == 1
    assert len(answer.evicted()) == 2


def test_t7_the_rack_whose_victims_cost_least_is_freed() -> None:
    full = [*fillers("a", 1, 1, 1, 1), *fillers("b", 4)]
    answer = simulate(HIGH, r.nodes({"a": 1, "b": 1}), full, important("g", 4, at="5s"), until="60s")
    assert [name for _, name in answer.evicted()] == ["f-b0"]
    assert r.racks_of(answer.nodes("g-")) == ["b"]


def test_t7_no_pod_is_evicted_if_no_rack_is_large_enough() -> None:
    full = [*fillers("a", 4), *fillers("b", 4)]
    answer = simulate(HIGH, r.nodes({"a": 1, "b": 1}), full, important("g", 8, at="5s"), until="60s")
    assert not answer.evicted()
    assert not answer.bound("g-")


def test_t7_a_replacement_preempts_in_the_rack_of_its_gang() -> None:
    gang = important("g", 3)
    gang[1]["metadata"].setdefault("annotations", {})[f"{m.SIM}delete-at"] = "5s"
    late = m.native_pods("g", 4, priority="high")[3]
    late["metadata"]["annotations"] = {f"{m.SIM}at": "8s"}
    taker = m.pod("taker", 1, nodeSelector={r.RACK: "b"}, at="6s")
    other = fillers("a", 4, at="1s")
    answer = simulate(HIGH, r.nodes({"b": [3]}), r.nodes({"a": [4]}, start=1), gang, taker, other, late, until="60s")
    assert [name for _, name in answer.evicted()] == ["taker"]
    assert r.racks_of(answer.nodes("g-")) == ["b"]


def test_t7_one_rack_is_reserved_for_a_starving_gang() -> None:
    """Small pods keep coming; the gang needs a whole rack."""
    config = {"actions": [{"name": "allocate"}, {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 10}}]}
    small = [m.pod(f"s{n}", 2, at=f"{n}s", run_time="8s") for n in range(60)]
    answer = simulate(r.nodes({"a": 2, "b": 2}), small, r.native("g", 8, at="3s"), config=config)
    assert len(r.racks_of(answer.nodes("g-"))) == 1
    assert answer.first_bound("g-")["g-0"] < 55


def test_t7_r7_a_reservation_ends_when_its_nodes_are_in_one_rack_no_longer() -> None:
    arguments = {"starvingJobTimeThreshold": 5, "reservedNodePercent": 100}
    config = {"actions": [{"name": "allocate"}, {"name": "reserve", "arguments": arguments}]}
    moved = m.patch("10s", "Node", "a-1", metadata={"labels": {r.RACK: "b"}})
    small = [m.pod(f"s{n}", 4, run_time="60s") for n in range(2)]
    late = m.pod("late", 2, at="12s", nodeSelector={r.RACK: "b"}, run_time="5s")
    freed = m.step("11s", "delete", "Pod", "s1")
    answer = simulate(
        r.nodes({"a": 2}), small, r.native("g", 8, at="1s"), moved, freed, late, config=config, until="30s"
    )
    assert answer.first_bound("late") == {"late": 12.0}
