"""G10: `missing` and `reasons` have every role that lacks something, each pod speaks of its own role, `sim` has the
numbers of the state that it shows, and numbers alone are written once for a gang, at most every 30 s."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from support import manifests as m
from support.answers import Answer, waits_because
from support.manifests import Obj
from support.simulation import NO_ENQUEUE, NO_EVICTIONS, simulate


def two_roles(cpu_a: int, cpu_b: int) -> list[Obj]:
    group = m.podgroup("g", 5, roles={"a": 2, "b": 3})
    return [group, *_of_role("a", 2, cpu_a), *_of_role("b", 3, cpu_b)]


def _of_role(role: str, count: int, cpu: int) -> list[Obj]:
    joins = {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": role}
    return [m.pod(f"{role}-{n}", cpu, annotations=joins) for n in range(count)]


def said_by(answer: Answer, *pods: str) -> set[str]:
    return {waits_because(answer.obj("Pod", pod)) for pod in pods}


def test_g10_every_role_that_lacks_something_is_listed() -> None:
    answer = simulate(m.node("n", 1), two_roles(2, 2), config=NO_EVICTIONS)
    pending = answer.pending("default/g")
    assert pending["missing"] == {"a": 2, "b": 3}
    reason = {"reason": "Insufficient cpu", "nodes": 1}
    assert pending["reasons"] == [{"role": "a", **reason}, {"role": "b", **reason}]
    assert "2 of 2 pods of role a and 3 of 3 pods of role b do not fit" in pending["message"]


def test_g10_each_pod_speaks_of_its_own_role() -> None:
    answer = simulate(m.node("n", 1), two_roles(2, 2), config=NO_EVICTIONS)
    (of_a,), (of_b,) = said_by(answer, "a-0", "a-1"), said_by(answer, "b-0", "b-1", "b-2")
    assert of_a.startswith("2 of 2 pods of role a do not fit: 0/1 nodes")
    assert of_b.startswith("3 of 3 pods of role b do not fit: 0/1 nodes")


def test_g10_roles_with_several_reasons_say_each_its_own() -> None:
    roles = two_roles(2, 1)
    for pod in roles[3:]:
        pod["spec"]["nodeSelector"] = {"zone": "none"}
    answer = simulate(m.node("n", 1), roles, config=NO_EVICTIONS)
    assert [(one["role"], one["reason"]) for one in answer.pending("default/g")["reasons"]] == [
        ("a", "Insufficient cpu"),
        ("b", "node(s) didn't match Pod's node affinity/selector"),
    ]
    (of_b,) = said_by(answer, "b-0", "b-1", "b-2")
    assert "affinity/selector" in of_b
    assert "Insufficient cpu" not in of_b


def test_g10_a_pod_whose_role_fits_says_so_and_which_role_does_not() -> None:
    answer = simulate(m.node("n", 3), two_roles(1, 1), config=NO_EVICTIONS)
    assert answer.pending("default/g")["missing"] == {"b": 2}
    assert said_by(answer, "a-0", "a-1") == {
        "2 pods of role a fit, 2 of 3 pods of role b do not fit: 0/1 nodes are available: 1 Insufficient cpu."
    }


def test_g10_surplus_speaks_of_its_own_role() -> None:
    roles = (m.role("master", 5, minimum=3), m.role("work", 5, minimum=2))
    answer = simulate(m.node("n", 5), m.job("j", *roles), config=NO_EVICTIONS)
    assert said_by(answer, "j-master-3") == {
        "2 of 2 pods of role master do not fit: 0/1 nodes are available: 1 Insufficient cpu."
    }
    assert said_by(answer, "j-work-2", "j-work-4") == {
        "3 of 3 pods of role work do not fit: 0/1 nodes are available: 1 Insufficient cpu."
    }


def test_g10_a_total_that_any_role_could_make_up() -> None:
    pods = [*_of_role("a", 2, 1), *_of_role("b", 2, 2)]
    answer = simulate(m.node("n", 1), m.podgroup("g", 3), pods, config=NO_EVICTIONS)
    pending = answer.pending("default/g")
    assert pending["missing"] == {"": 2}
    assert "2 of 3 pods of any role do not fit" in pending["message"]
    every = simulate(m.node("n", 1), m.podgroup("g", 4), pods, config=NO_EVICTIONS).pending("default/g")
    assert every["missing"] == {"a": 1, "b": 2}
    assert "1 of 2 pods of role a and 2 of 2 pods of role b do not fit" in every["message"]


def test_g10_what_is_reserved_counts_as_needed() -> None:
    """The gang needs 3 pods; two of them have their room on the reserved node already."""
    reserve = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 5, "reservedNodePercent": 100}}
    config = {"actions": [*({"name": name} for name in ("enqueue", "allocate", "backfill")), reserve]}
    running = m.pod("f", 2, nodeName="n")
    answer = simulate(m.node("n", 4), running, m.gang("a", 3, cpu=1), config=config, until="20s")
    assert answer.why("default/a").startswith("1 of 3 pods does not fit")


def test_g10_of_a_group_each_gang_says_what_it_lacks_itself() -> None:
    names = ["default/a", "default/b"]
    fits, large = m.koordinator_gang("a", 1, groups=names), m.koordinator_gang("b", 1, groups=names, cpu=8)
    answer = simulate(m.node("n", 4), fits, large)
    assert answer.why("default/b").startswith("1 of 1 pod does not fit")
    assert answer.why("default/a").startswith("default/b of its group waits: 1 of 1 pod does not fit")
    assert answer.pending("default/a")["missing"] == {"": 1}


GOES_STALE: dict[str, Sequence[Obj | list[Obj]]] = {
    "a gang": [m.node("n", 3), m.gang("g", 2, cpu=2), m.pod("s", 2, at="10s")],
    "a group": [
        m.node("n", 3),
        m.koordinator_gang("g", 1, groups=["default/g", "default/h"], cpu=2),
        m.koordinator_gang("h", 1, groups=["default/g", "default/h"], cpu=2),
        m.pod("s", 2, at="10s"),
    ],
    "surplus": [
        m.node("n", 5),
        m.node("other", 1),
        m.gang("g", 4, 2, cpu=2),
        m.pod("s", 1, at="10s"),
    ],
    "at admission": [
        m.node("n", 3),
        m.podgroup("g", 2, resources={"cpu": "4"}, at="1s"),
        m.pod("s", 2, at="10s"),
    ],
}
"""A gang that waits, and a pod that makes its numbers other ones: nothing wakes the gang for that (G9)."""


@pytest.mark.parametrize("what", GOES_STALE)
def test_g10_i5_the_answer_has_the_numbers_of_the_state_that_it_shows(what: str) -> None:
    documents = GOES_STALE[what]
    plain = simulate(*documents, config=NO_EVICTIONS)
    restarted = simulate(*documents, m.restart("20s"), config=NO_EVICTIONS)
    facts = ("gang", "reason", "message", "missing", "reasons")
    shown = [[{fact: one[fact] for fact in facts} for one in answer.data["pending"]] for answer in (plain, restarted)]
    assert shown[0] == shown[1]
    assert shown[0] or what == "surplus"


def test_g10_the_room_that_another_pod_took_is_counted_no_more() -> None:
    answer = simulate(*GOES_STALE["a gang"], config=NO_EVICTIONS)
    assert answer.pending("default/g")["missing"] == {"": 2}


def _numbers_change(*times: int) -> Answer:
    """A gang of 2 pods that do not fit on 8 nodes; at each of the times one of these is removed."""
    nodes = [m.node(f"n{n}", 1, delete_at=f"{at}s") for n, at in enumerate(times)]
    return simulate(nodes, m.node("last", 1), m.gang("g", 2, cpu=2), config=NO_ENQUEUE)


def test_g10_numbers_alone_are_not_written_on_every_pod() -> None:
    answer = _numbers_change(10)
    assert len(answer.lines("warning", kind="PodGroup")) == 2
    assert "0/2 nodes" in waits_because(answer.obj("Pod", "g-0"))
    assert "0/1 nodes" in waits_because(answer.obj("PodGroup", "g"))


def test_g10_numbers_alone_are_written_at_most_every_30_s_and_the_last_ones_are() -> None:
    answer = _numbers_change(10, 12, 14, 50, 55)
    assert [line["t"] for line in answer.lines("warning", kind="PodGroup")] == [0.0, 10.0, 40.0, 70.0]
    assert "0/1 nodes" in waits_because(answer.obj("PodGroup", "g"))


def test_g10_another_reason_is_written_at_once_and_on_every_pod() -> None:
    cordon = m.step("12s", "patch", "Node", "n", patch={"spec": {"unschedulable": True}})
    gone = m.node("m", 1, delete_at="10s")
    answer = simulate(m.node("n", 1), gone, m.gang("g", 2, cpu=2), cordon, config=NO_ENQUEUE)
    assert [line["t"] for line in answer.lines("warning", kind="PodGroup")] == [0.0, 10.0, 12.0]
    assert "unschedulable" in waits_because(answer.obj("Pod", "g-1"))


def _missing_changes(gangs: int, until: str = "1h") -> Answer:
    """Gangs of 4 pods, each of a request of its own, that lack 1 pod at first and from 10 s on 2, since a node is
    gone."""
    nodes = [m.node("a", 2), m.node("b", 1, delete_at="10s")]
    waiting = (m.gang(f"g{n:03d}", 4, cpu=f"{900 + n}m") for n in range(gangs))
    return simulate(nodes, *waiting, config=NO_ENQUEUE, until=until)


def test_g10_of_many_gangs_a_bounded_number_says_at_once_that_another_number_is_missing() -> None:
    answer = _missing_changes(80)
    at = [line["t"] for line in answer.lines("warning", kind="PodGroup")]
    assert {time: at.count(time) for time in set(at)} == {0.0: 80, 10.0: 64, 40.0: 16}
    assert all("2 of 4" in waits_because(answer.obj("PodGroup", f"g{n:03d}")) for n in range(80))


@pytest.mark.parametrize(("until", "pods"), [("39s", 64), ("69s", 128), ("1h", 320)])
def test_g10_pods_say_in_turn_that_another_number_is_missing_and_all_in_the_end(until: str, pods: int) -> None:
    answer = _missing_changes(80, until)
    said = [waits_because(answer.obj("Pod", f"g{n:03d}-{i}")) for n in range(80) for i in range(4)]
    assert sum("2 of 4" in one for one in said) == pods
