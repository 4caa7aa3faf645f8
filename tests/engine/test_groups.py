"""Groups of gangs (K7, S1): which gangs start together, which are awaited, and lists that disagree."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.config import parse
from enbloc.engine.engine import Engine
from enbloc.engine.state.groups import Groups, mark_left, minima_are_bound
from enbloc.engine.tables.commit_marks import mark_of
from enbloc.engine.tables.tasks import GangState, TaskStatus
from enbloc.gangs.model import GangKey, GangSpec
from engine import gang_states

BOUND = TaskStatus.BOUND


def key(name: str) -> GangKey:
    """`far/a` is in another namespace."""
    namespace, _, own = name.rpartition("/")
    return GangKey("t", namespace or "ns", own)


class Scene:
    """Gangs by name; each has a minimum of one pod."""

    def __init__(self, *, isolated: bool = False, **lists: str) -> None:
        """`lists`: the gangs that each gang names."""
        self.state = Engine(parse(None)).state
        self.groups = Groups(self.state, isolated=isolated)
        self.complaints: list[str] = []
        for name, names in lists.items():
            self.put(name, names)
        self.settle()

    def put(self, name: str, names: str = "", **fields: Any) -> GangState:
        one = key(name)
        named = tuple(map(key, names.split()))
        self.state.put_gang(GangSpec(one, f"{one.namespace}/{one.name}", 0, 1, group=named, **fields))
        return self.state.gangs[one]

    def remove(self, name: str) -> None:
        self.state.remove_gang(key(name))

    def start(self, name: str) -> None:
        """Its minimum is bound."""
        gang = self.state.gangs[key(name)]
        gang_states.task(gang, f"{name}-0", status=BOUND)
        self.state.touch(gang)

    def settle(self) -> list[str]:
        """The gangs that are read in this cycle."""
        self.complaints = [one.message for one in self.groups.settle(self.state.dirty.values())]
        read = sorted(gang.key.name for gang in self.state.dirty.values())
        self.state.dirty.clear()
        return read

    def together(self) -> list[str]:
        """The groups: their gangs, and after `>` those that they await and that are not satisfied."""
        groups = {id(group): group for gang in self.state.gangs.values() if (group := self.groups.of(gang)) is not None}
        found = []
        for group in groups.values():
            awaits = "".join(one.name for one in group.unsatisfied)
            found.append("".join(one.name for one in group.keys) + (f">{awaits}" if awaits else ""))
        return sorted(found)


@pytest.mark.parametrize(
    ("lists", "together"),
    [
        ({"a": ""}, []),
        ({"a": "a"}, ["a"]),
        ({"a": "a b", "b": "a b"}, ["ab"]),
        ({"a": "b", "b": "a"}, ["ab"]),  # a list need not name the gang itself
        ({"a": "b", "b": ""}, ["a>b"]),
        ({"a": "b", "b": "c", "c": "a"}, ["abc"]),  # each reaches the others
        ({"a": "b", "b": "c", "c": ""}, ["a>b", "b>c"]),
        ({"a": "b c", "b": "a", "c": ""}, ["ab>c"]),
        ({"a": "b", "b": "a", "c": "a"}, ["ab", "c>a"]),
        ({"a": "gone"}, ["a>gone"]),
        ({"a": "c b gone"}, ["a>bcgone"]),
        ({"a": "b", "b": "a", "c": "d", "d": "c"}, ["ab", "cd"]),
    ],
)
def test_k7_s1_gangs_start_together_if_each_names_the_other(lists: dict[str, str], together: list[str]) -> None:
    assert Scene(**lists).together() == together


def test_k7_mates_and_gangs_that_are_needed() -> None:
    scene = Scene(a="b c", b="a", c="d", d="c", e="", f="e gone")
    gangs = {one.name: gang for one, gang in scene.state.gangs.items()}
    assert [gang.key.name for gang in scene.groups.mates(gangs["a"])] == ["a", "b"]
    assert scene.groups.mates(gangs["e"]) == [gangs["e"]]
    assert {one.name for one in scene.groups.needed_by(gangs["a"])} == {"a", "b", "c", "d"}
    assert {one.name for one in scene.groups.needed_by(gangs["c"])} == {"c", "d"}
    assert {one.name for one in scene.groups.needed_by(gangs["e"])} == {"e"}
    assert {one.name for one in scene.groups.needed_by(gangs["f"])} == {"e", "f", "gone"}
    gangs["a"].satisfied = True
    assert {one.name for one in scene.groups.needed_by(gangs["a"])} == {"a", "b"}


def test_k7_gangs_are_read_when_their_group_changes() -> None:
    scene = Scene(a="b", b="", c="")
    assert scene.together() == ["a>b"]
    scene.put("b", "a")
    assert scene.settle() == ["a", "b"]
    assert scene.together() == ["ab"]
    assert scene.settle() == []
    scene.put("c", "a")
    assert scene.settle() == ["c"], "the group of a and b is as it was"
    scene.put("b")
    assert scene.settle() == ["a", "b"]
    assert scene.together() == ["a>b", "c>a"]
    scene.put("a")
    assert scene.settle() == ["a"]
    assert scene.together() == ["c>a"]


def test_k7_a_group_that_awaits_a_gang_is_read_when_that_comes_starts_or_goes() -> None:
    scene = Scene(a="b", c="")
    group = scene.groups.of(scene.state.gangs[key("a")])
    assert group is not None
    assert (group.absent, scene.together()) == (1, ["a>b"])
    scene.put("b")
    assert scene.settle() == ["a", "b"]
    assert scene.complaints == [f"{DISAGREE} ns/b, which does not name it"]
    assert (group.absent, scene.together()) == (0, ["a>b"])
    scene.start("c")
    assert scene.settle() == ["c"], "it is not awaited"
    scene.start("b")
    assert scene.settle() == ["a", "b"]
    assert scene.together() == ["a"]
    scene.state.gangs[key("b")].tasks.clear()
    scene.remove("b")
    assert scene.settle() == ["a"]
    assert (group.absent, scene.together()) == (1, ["a>b"])


def test_k7_an_awaited_gang_counts_once_all_that_start_with_it_have_started() -> None:
    scene = Scene(a="b", b="c", c="b")
    scene.start("b")
    scene.settle()
    assert scene.together() == ["a>b", "bc"]
    scene.start("c")
    assert scene.settle() == ["a", "b", "c"]
    assert scene.together() == ["a", "bc"]
    scene.put("b", "c", problem="is bad")
    scene.settle()
    assert scene.together() == ["a>b", "bc"]


@pytest.mark.parametrize(
    ("fields", "in_group"), [({}, False), ({"holds": True}, True), ({"min_free_resources": {"cpu": 1}}, True)]
)
def test_k6_k7_a_gang_alone_is_a_group_if_it_holds_or_checks_free_room(fields: Any, in_group: bool) -> None:
    scene = Scene()
    gang = scene.put("a", **fields)
    scene.settle()
    assert (scene.groups.of(gang) is not None) is in_group


@pytest.mark.parametrize(("of_a", "of_b", "holds"), [(True, True, True), (True, False, False), (False, False, False)])
def test_k6_a_group_is_non_strict_if_all_its_gangs_are(of_a: bool, of_b: bool, holds: bool) -> None:
    scene = Scene()
    gang = scene.put("a", "b", holds=of_a, waiting_ns=5)
    scene.put("b", "a", holds=of_b, waiting_ns=3)
    scene.settle()
    group = scene.groups.of(gang)
    assert group is not None
    assert (group.holds, group.waiting_ns) == (holds, 5)


def test_g11_decisions_that_are_completely_bound_and_groups_that_have_started() -> None:
    scene = Scene(a="b", b="a")
    group = scene.groups.of(scene.state.gangs[key("a")])
    assert group is not None
    one = gang_states.task(scene.state.gangs[key("a")], "a-0", status=BOUND)
    one.decision = "d1"
    scene.state.touch(one.gang)
    scene.settle()
    assert (group.committed, group.met) == (frozenset(), False)
    one.mark = "1"
    scene.state.touch(one.gang)
    assert scene.settle() == ["a", "b"], "the start of one gang counts for all"
    assert group.committed == {"d1"}
    scene.start("b")
    scene.settle()
    assert group.met
    scene.put("b", "a", problem="is bad")
    assert scene.settle() == ["b"], "nothing that counts for the group changed"


# ---- lists that disagree

DISAGREE = "gangs of a group disagree: ns/a names"


@pytest.mark.parametrize(
    ("lists", "complaints"),
    [
        ({"a": "a b", "b": "a b"}, []),
        ({"a": "b", "b": "a"}, []),
        ({"a": "gone"}, []),  # it may come yet
        ({"a": "b", "b": ""}, [f"{DISAGREE} ns/b, which does not name it"]),
        ({"a": "c", "b": "c", "c": ""},
         [f"{DISAGREE} ns/c, which does not name it",
          "gangs of a group disagree: ns/b names ns/c, which does not name it"]),
        ({"a": "b c", "b": "a", "c": ""}, [f"{DISAGREE} ns/c, which does not name it"]),
        ({"a": "a b", "b": "a b c", "c": "b"},
         [f"{DISAGREE} 2 gangs, and 3 start together",
          "gangs of a group disagree: ns/c names 1 gang, and 3 start together"]),
    ],
)  # fmt: skip
def test_k7_lists_that_disagree_are_reported_once(lists: dict[str, str], complaints: list[str]) -> None:
    scene = Scene(**lists)
    assert scene.complaints == complaints
    scene.put("other", "other")
    scene.settle()
    assert scene.complaints == []


def test_k7_a_disagreement_is_reported_again_when_it_is_another_or_the_gang_is() -> None:
    scene = Scene(a="b", b="", c="")
    assert len(scene.complaints) == 1
    scene.put("a", "c")
    scene.settle()
    assert scene.complaints == [f"{DISAGREE} ns/c, which does not name it"]
    scene.remove("a")
    scene.settle()
    scene.put("a", "c")
    scene.settle()
    assert scene.complaints == [f"{DISAGREE} ns/c, which does not name it"]


def test_k4_a_gang_whose_object_is_not_known_yet_does_not_disagree() -> None:
    scene = Scene(a="b")
    scene.put("b", problem="PodGroup ns/b does not exist")
    scene.settle()
    assert scene.complaints == []


@pytest.mark.parametrize(("isolated", "complaints"), [(False, 1), (True, 0)])
def test_s7_gangs_of_other_namespaces_are_not_named_in_isolation(isolated: bool, complaints: int) -> None:
    scene = Scene(isolated=isolated)
    scene.put("far/b")
    scene.put("a", "far/b")
    scene.settle()
    assert len(scene.complaints) == complaints


# ---- what has started


@pytest.mark.parametrize(
    ("minimum", "minima", "bound", "met"),
    [
        (2, {}, {"": 1}, False),
        (2, {}, {"": 2}, True),
        (0, {}, {}, True),
        (2, {"a": 1, "b": 1}, {"a": 2}, False),
        (2, {"a": 1, "b": 1}, {"a": 1, "b": 1}, True),
        (3, {"a": 1, "b": 1}, {"a": 1, "b": 1}, False),
        (3, {"a": 1}, {"a": 1, "b": 2}, True),
    ],
)
def test_k7_minima_that_are_bound(minimum: int, minima: dict[str, int], bound: dict[str, int], met: bool) -> None:
    made = gang_states.gang(minimum, minima)
    for role, count in bound.items():
        for number in range(count):
            status = TaskStatus.SUCCEEDED if number else BOUND
            gang_states.task(made, f"{role}{number}", role=role, status=status)
    for status in (TaskStatus.PENDING, TaskStatus.ASSUMED, TaskStatus.FAILED, TaskStatus.RELEASING):
        gang_states.task(made, status.name, role="a", status=status)
    assert minima_are_bound(made) is met


@pytest.mark.parametrize(
    ("tasks", "covered", "left"),
    [
        ([], "x", ""),
        ([(BOUND, "")], "x", "x"),
        ([(BOUND, "x")], "", "x"),
        ([(TaskStatus.ASSUMED, "x")], "", "x"),
        ([(TaskStatus.FAILED, "x")], "", "x"),
        ([(TaskStatus.PENDING, "")], "x", ""),  # no pod shows that it started
        ([(TaskStatus.RELEASING, "x")], "", ""),
        ([(TaskStatus.RELEASING, "x"), (BOUND, "")], "", ""),
    ],
)
def test_g11_the_mark_that_is_left_of_a_gang(tasks: list[tuple[TaskStatus, str]], covered: str, left: str) -> None:
    made = gang_states.gang(2)
    mark = mark_of(made.spec)
    made.covered = mark if covered else ""
    for number, (status, text) in enumerate(tasks):
        gang_states.task(made, f"p{number}", status=status).mark = mark if text else ""
    assert mark_left(made) == (mark if left else "")


@pytest.mark.parametrize(
    ("marks", "waves", "left"),
    [
        (["2", "5"], False, "5"),
        (["5", "2"], False, "5"),
        (["2;a=2", "2;b=2"], False, "2;a=2"),
        (["2;a=2", "2;b=2"], True, "2;a=2;b=2"),
        (["2;a=2", "4;a=2;b=2"], True, "4;a=2;b=2"),
    ],
)
def test_g11_of_several_marks_the_one_that_covers_the_others_is_left(marks: list[str], waves: bool, left: str) -> None:
    """With waves, each of which has its own mark, all of them."""
    made = gang_states.gang(2, waves=waves)
    for number, mark in enumerate(marks):
        gang_states.task(made, f"p{number}", status=BOUND).mark = mark
    assert mark_left(made) == left
