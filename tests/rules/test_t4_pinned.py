"""T4: members that are bound fix the domain for those that come after; T8: what wakes a gang, restarts."""

from __future__ import annotations

from support import manifests as m
from support import racks as r
from support.simulation import simulate


def test_t4_a_replacement_goes_to_the_rack_of_the_others() -> None:
    gang = r.native("g", 3)
    gang[1]["metadata"].setdefault("annotations", {})[f"{m.SIM}delete-at"] = "5s"
    late = m.native_pods("g", 4)[3]
    late["metadata"]["annotations"] = {f"{m.SIM}at": "6s"}
    answer = simulate(r.nodes({"a": 1}), r.nodes({"b": 1}, cpu=3), gang, late)
    assert r.racks_of(answer.nodes("g")) == ["b"]


def test_t4_a_replacement_without_room_in_its_rack_says_where_there_is_room() -> None:
    gang = r.native("g", 3)
    gang[1]["metadata"].setdefault("annotations", {})[f"{m.SIM}delete-at"] = "5s"
    late = m.native_pods("g", 4, cpu=2)[3]
    late["metadata"]["annotations"] = {f"{m.SIM}at": "6s"}
    answer = simulate(r.nodes({"a": 1}), r.nodes({"b": 1}, cpu=3), gang, late, until="10s")
    assert "g-3" not in answer.nodes()
    assert "example.com/rack b" in answer.why("default/g")
    assert "a has room for 1" in answer.why("default/g")


def test_t4_a_restart_keeps_the_domain() -> None:
    late = m.native_pods("g", 4)[3]
    late["metadata"]["annotations"] = {f"{m.SIM}at": "6s"}
    answer = simulate(r.nodes({"a": 2}), r.nodes({"b": 1}), r.native("g", 3), m.restart("5s"), late)
    assert r.racks_of(answer.nodes("g")) == ["b"]


def test_t8_a_gang_wakes_when_its_rack_has_room() -> None:
    full = [m.pod(f"f{n}", 4, run_time=f"{10 + 10 * n}s", nodeSelector={r.RACK: "a"}) for n in range(2)]
    answer = simulate(r.nodes({"a": 2, "b": 1}), full, r.native("g", 8, at="1s"))
    assert answer.times("g-") == [20.0] * 8


def test_t8_a_gang_wakes_when_a_node_gets_its_label() -> None:
    answer = simulate(m.node("a-0"), r.native("g", 4), m.patch("7s", "Node", "a-0", metadata={"labels": {r.RACK: "a"}}))
    assert answer.times("g-") == [7.0] * 4


def test_t8_a_gang_wakes_when_its_tree_is_created() -> None:
    gang = m.gang("g", 4, annotations=r.kai_annotations("dc", r.RACK))
    answer = simulate(r.nodes({"a": 1}), gang, r.topology("dc", r.RACK, group=r.KAI, at="7s"), until="20s")
    assert answer.times("g-") == [7.0] * 4


def test_t8_a_gang_whose_tree_does_not_exist_says_so() -> None:
    answer = simulate(r.nodes({"a": 1}), m.gang("g", 4, annotations=r.kai_annotations("dc", r.RACK)))
    assert answer.why("default/g") == "its topology constraint cannot be met: topology dc does not exist"


def test_t8_gangs_of_equal_pods_at_different_levels_wake_when_a_node_is_added() -> None:
    """The counts of one level are read before those of the other know the new row."""
    groups = [
        m.native_podgroup(name, {"basic": {}}, schedulingConstraints={"topology": [{"key": key}]})
        for name, key in (("g", r.RACK), ("h", r.BLOCK))
    ]
    pods = [*m.native_pods("g", 2, cpu=4), *m.native_pods("h", 2, cpu=4)]
    more = r.nodes({"a": 3}, block="x", start=1, at="7s")
    answer = simulate(r.nodes({"a": 1}, block="x"), groups, pods, more)
    assert sorted([*answer.times("g-"), *answer.times("h-")]) == [0.0, 7.0, 7.0, 7.0]
