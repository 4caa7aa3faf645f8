"""T1 to T4: the parts of a gang that must or should be together, and the domains that each of them may use."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from enbloc.engine.core.placement import domains as module
from enbloc.engine.core.placement.domains import (
    WHOLE,
    Domains,
    Option,
    Part,
    constraints_on,
    part_of,
)
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.resources import Bools
from enbloc.gangs.gang_tree import Branch
from enbloc.gangs.topology import PodTopology, TopologyConstraint
from engine.gang_states import gang, task
from support import manifests as m
from support import racks as r
from support.direct_scheduler import knowing

RACK, BLOCK = TopologyConstraint("t", "rack"), TopologyConstraint("t", "block")
TREE = r.topology("dc", r.BLOCK, r.RACK)


# ---- the parts of a gang


@pytest.mark.parametrize(
    ("spec", "of_pod", "parts"),
    [
        ({}, [], []),
        ({"topology": BLOCK}, [], [((), BLOCK)]),
        ({"topology_of_role": {"w": RACK}}, [], [(("role", "w"), RACK)]),
        ({"topology_of_role": {"other": RACK}}, [], []),
        (
            {"topology": BLOCK, "branches": {"w": Branch(("x", "y"), ((("x",), RACK),))}},
            [],
            [((), BLOCK), (("role", "x"), RACK)],
        ),
        (
            {"branches": {"w": Branch(("x", "y"), ())}, "topology_of_role": {"w": RACK}},
            [],
            [(("role", "x", "y", "w"), RACK)],
        ),
        ({}, [PodTopology(RACK)], [(("role", "w"), RACK)]),
        ({}, [PodTopology(RACK, of_role=False)], [(WHOLE, RACK)]),
        ({"topology": RACK}, [PodTopology(RACK, of_role=False)], [((), RACK)]),  # both say the same
        ({"topology": RACK}, [PodTopology(RACK)], [((), RACK), (("role", "w"), RACK)]),
        ({"topology": BLOCK}, [PodTopology(RACK, of_role=False)], [((), BLOCK), (WHOLE, RACK)]),
        ({}, [PodTopology(RACK, group="p")], [(("role", "group p"), RACK)]),
        (
            {"branches": {"w": Branch(("x",), ())}},
            [PodTopology(RACK, group="p", slices=(4,))],
            [(("role", "x", "group p", "w", "slice 1"), RACK)],
        ),
        (
            {},
            [PodTopology(BLOCK, slices=(4,)), PodTopology(RACK, slices=(4, 2))],
            [(("role", "w", "slice 1"), BLOCK), (("role", "w", "slice 1", "slice 3"), RACK)],
        ),
        ({"slices_of_role": {"w": (PodTopology(RACK, slices=(3,)),)}}, [], [(("role", "w", "slice 2"), RACK)]),
    ],
)
def test_t0_parts_that_the_seventh_task_of_a_role_belongs_to(
    spec: dict[str, Any], of_pod: list[PodTopology], parts: list[Any]
) -> None:
    made = gang(**spec)
    one = task(made, "w-6", 6, "w", topology=tuple(of_pod))
    assert constraints_on(one) == parts


@pytest.mark.parametrize(
    ("spec", "of_pod", "split", "parts", "constrained"),
    [
        ({}, (), False, False, False),
        ({"topology": BLOCK}, (), False, False, True),
        ({"topology_of_role": {"w": RACK}}, (), True, True, True),
        ({"slices_of_role": {"w": (PodTopology(RACK, slices=(2,)),)}}, (), True, True, True),
        ({"branches": {"w": Branch(("x",), ((("x",), RACK),))}}, (), True, True, True),
        ({"branches": {"w": Branch(("x",), ())}}, (), False, False, False),
        ({}, (PodTopology(RACK),), False, True, True),
    ],
)
def test_t0_constraints_for_some_of_a_gangs_tasks(
    spec: dict[str, Any], of_pod: tuple[PodTopology, ...], split: bool, parts: bool, constrained: bool
) -> None:
    made = gang(**spec)
    tasks = [task(made, f"w-{n}", n, "w", topology=of_pod) for n in range(3)]
    assert (made.spec.is_split, made.has_parts, made.is_constrained) == (split, parts, constrained)
    assert (part_of(tasks[0]) is None) == (not constrained)
    assert part_of(tasks[0]) == part_of(tasks[1])
    assert (part_of(tasks[0]) == part_of(tasks[2])) == ("slices_of_role" not in spec)
    made.tasks.clear()
    assert made.has_parts == split, "its pods are gone"


# ---- the domains of a part


def racks(**blocks: dict[str, Any]) -> State:
    """Nodes of these blocks, by rack."""
    nodes = [one for block, of_block in blocks.items() for one in r.nodes(of_block, block)]
    return knowing(TREE, *nodes).engine.state


def part(state: State, *counts: int, pinned: str = "", **asked: str) -> Part:
    """So many pods of 1 cpu, of 2 cpu, …; `pinned`: the nodes of members that are placed."""
    constraint = TopologyConstraint("kueue/dc", **{name: f"example.com/{level}" for name, level in asked.items()})
    found = state.trees.asked(constraint)
    assert not isinstance(found, str)
    classes = [state.classes.of("default", m.pod_spec(cpu)) for cpu, _ in enumerate(counts, 1)]
    needed = {cls.id: count for cls, count in zip(classes, counts, strict=True) if count}
    rows = tuple(state.nodes.rows[name] for name in pinned.split())
    return Part(gang(), (), constraint, found, needed, sum(counts), rows)


def rows(state: State, names: str) -> Bools:
    return np.array([name in names.split() for name in state.nodes.names[: state.nodes.count]])


def shown(state: State, option: Option) -> str:
    """`block a+b`: racks a and b within one block; `block abc`: all nodes of a block, which has these racks."""
    level = option.level.name.partition("/")[2] if option.level is not None else "cluster"
    preferred = option.part.asked.preferred
    assert preferred is not None
    racks = "".join(r.racks_of({name: name for name in state.nodes.names if rows(state, name)[option.rows].any()}))
    names = "+".join(preferred.names[one].rpartition("/")[2] for one in option.domains)
    return f"{level} {names if preferred.name == r.RACK and names else racks}"


def options(state: State, of: Part, closed: str = "", beside: list[Option] | None = None) -> list[str]:
    found = Domains(state, of, rows(state, closed) if closed else None, beside or [])
    return [shown(state, option) for option in islice(found.options(), 12)]


TWO_BLOCKS = {"one": {"a": 1, "b": 1}, "two": {"c": 2, "d": [2]}}
"""Racks a and b have room for 4 pods of 1 cpu, c for 8, d for 2."""


@pytest.mark.parametrize(
    ("count", "asked", "found"),
    [
        (4, {"required": "rack"}, "rack a, rack b, rack c"),
        (2, {"required": "rack"}, "rack d, rack a, rack b, rack c"),
        (9, {"required": "rack"}, ""),
        (7, {"required": "block"}, "block ab, block cd"),
        (9, {"required": "block"}, "block cd"),
        (7, {"required": "block", "preferred": "rack"}, "rack c, block a+b, block c+d, block ab, block cd"),
        (11, {"required": "block", "preferred": "rack"}, ""),
        (
            11,
            {"preferred": "rack"},
            "cluster a+c, cluster b+c, cluster a+c+d, cluster b+c+d, cluster a+b+c, cluster a+b+c+d, cluster abcd",
        ),
        (19, {"preferred": "rack"}, "cluster abcd"),  # rows outside of every rack may have room
        (6, {"preferred": "block"}, "block ab, block cd, cluster abcd, cluster abcd"),
        (6, {"required": "rack", "preferred": "block"}, "rack c"),  # the required level is narrower
    ],
)
def test_t2_options_the_best_first(count: int, asked: dict[str, str], found: str) -> None:
    """The lowest common level, then the fewest racks, then the smallest, then names."""
    state = racks(**TWO_BLOCKS)
    assert ", ".join(options(state, part(state, count, **asked))) == found


@pytest.mark.parametrize(
    ("pinned", "asked", "found"),
    [
        ("a-0", {"required": "rack"}, "rack a"),
        ("d-0", {"required": "rack"}, ""),  # without room
        ("e-0", {"required": "rack"}, ""),
        ("a-0 b-0", {"required": "rack"}, ""),
        ("bare-0", {"required": "rack"}, ""),
        ("a-0 b-0", {"required": "block", "preferred": "rack"}, "block a+b, block a+b+e, block abe"),
        ("d-0", {"required": "block", "preferred": "rack"}, "block c+d, block cd"),
        ("a-0 c-0", {"required": "block", "preferred": "rack"}, ""),
        ("d-0", {"preferred": "rack"}, "block c+d, block cd, cluster e+d, cluster a+d"),
        ("a-0 d-0", {"preferred": "rack"}, "cluster a+d, cluster a+e+d, cluster a+b+d"),
        ("bare-0", {"preferred": "rack"}, "cluster abbarecde"),
    ],
)  # fmt: skip
def test_t4_options_contain_the_members_that_are_placed(pinned: str, asked: dict[str, str], found: str) -> None:
    """Three pods; rack e has room for one, d for two. A node without labels is in no rack."""
    one, two = TWO_BLOCKS.values()
    nodes = [*r.nodes({**one, "e": [1]}, "one"), *r.nodes(two, "two"), m.node("bare-0")]
    state = knowing(TREE, *nodes).engine.state
    expected = found.split(", ") if found else []
    assert options(state, part(state, 3, pinned=pinned, **asked))[: len(expected) or 1] == expected


def test_t2_options_of_several_classes_have_room_for_each() -> None:
    """Three pods of 1 cpu and two of 2 cpu: d holds one of the larger. Room is summed over the classes."""
    state = racks(**TWO_BLOCKS)
    mixed = part(state, 3, 2, preferred="rack")
    assert options(state, mixed)[:5] == ["rack a", "rack b", "rack c", "block a+b", "block c+d"]
    assert options(state, part(state, 1, 3, required="rack")) == ["rack c"]
    level = mixed.asked.preferred
    assert level is not None
    domains = Domains(state, mixed, None, ())
    assert dict(zip(level.names, domains.counts(level).T.tolist(), strict=True)) == {
        "one/a": [4, 2], "one/b": [4, 2], "two/c": [8, 4], "two/d": [2, 1],
    }  # fmt: skip
    assert domains.room(level).tolist() == [5, 5, 5, 3]  # at most as many as are needed


def test_t5_a_rack_that_lost_its_nodes_is_in_no_option() -> None:
    direct = knowing(TREE, *r.nodes({"a": 1, "b": 1}, "one"), *r.nodes({"c": 1, "d": 1}, "two"))
    state = direct.engine.state
    part(state, 1, required="rack")  # the rack of c-0 is known
    direct.put(m.node("c-0", 4, labels={r.BLOCK: "two", r.RACK: "d"}))
    state.settle()
    assert options(state, part(state, 7, required="block", preferred="rack")) == [
        "rack d",
        "block a+b",
        "block ab",
        "block cd",
    ]


def test_t2_sets_beyond_the_bound_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three racks of room 4: that room for the larger one of a pair and then for the smaller one is a look each,
    then each rack as the larger one and each smaller one."""
    state = racks(one={"a": 1, "b": 1, "c": 1})
    of = part(state, 7, required="block", preferred="rack")
    for bound, found in ((8, "a+b a+c b+c"), (7, "a+b a+c"), (5, "a+b"), (4, "")):
        monkeypatch.setattr(module, "SETS_BOUND", bound)
        pairs = [text for text in options(state, of) if text.count("+") == 1]
        assert pairs == [f"block {pair}" for pair in found.split()], bound


# ---- what other parts and constraints take


@pytest.mark.parametrize(
    ("closed", "beside", "counts"),
    [
        ("", [], {"a": 4, "b": 4, "c": 8, "d": 2}),
        ("a-0 c-1", [], {"a": 0, "b": 4, "c": 4, "d": 2}),
        ("", ["c-0 c-1"], {"a": 4, "b": 4, "c": 5, "d": 2}),  # all of it is in rack c
        ("", ["c-0 c-1", "c-0 c-1"], {"a": 4, "b": 4, "c": 2, "d": 2}),
        ("", ["c-0 d-0"], {"a": 4, "b": 4, "c": 8, "d": 2}),  # in c or d
        ("", ["bare-0"], {"a": 4, "b": 4, "c": 8, "d": 2}),  # in no rack
        ("a-0", ["c-0 c-1"], {"a": 0, "b": 4, "c": 5, "d": 2}),
        ("c-1", ["c-0 c-1"], {"a": 4, "b": 4, "c": 4, "d": 2}),  # perhaps on the row that is closed anyway
    ],
)
def test_t1_room_without_what_is_closed_and_what_parts_beside_it_take(
    closed: str, beside: list[str], counts: dict[str, int]
) -> None:
    """A part beside it needs three pods of its class, on these nodes."""
    nodes = [one for block, of_block in TWO_BLOCKS.items() for one in r.nodes(of_block, block)]
    state = knowing(TREE, *nodes, m.node("bare-0")).engine.state
    of = part(state, 1, required="rack")
    level = of.asked.required
    assert level is not None
    others = [Option(part(state, 3, required="rack"), rows(state, names), level, ()) for names in beside]
    found = Domains(state, of, rows(state, closed) if closed else None, others).counts(level)
    assert {
        name.rpartition("/")[2]: count for name, [count] in zip(level.names, found.T.tolist(), strict=True)
    } == counts


def test_t1_parts_of_another_class_take_nothing() -> None:
    state = racks(**TWO_BLOCKS)
    of, other = part(state, 1, required="rack"), part(state, 0, 3, required="rack")
    level = of.asked.required
    assert level is not None
    beside = [Option(other, rows(state, "c-0 c-1"), level, ())]
    assert Domains(state, of, None, beside).counts(level).tolist() == [[4, 4, 8, 2]]


@pytest.mark.parametrize(
    ("closed", "pinned", "found"),
    [("", "", "c"), ("c-0 c-1", "", "a"), ("", "d-0", "d"), ("", "a-0 b-0", None), ("", "bare-0", None)],
)
def test_t4_the_roomiest_domain(closed: str, pinned: str, found: str | None) -> None:
    nodes = [one for block, of_block in TWO_BLOCKS.items() for one in r.nodes(of_block, block)]
    state = knowing(TREE, *nodes, m.node("bare-0")).engine.state
    of = part(state, 20, pinned=pinned, required="rack")
    option = Domains(state, of, rows(state, closed) if closed else None, ()).roomiest()
    assert (option and shown(state, option)) == (found and f"rack {found}")
    assert Domains(state, part(state, 20, preferred="rack"), None, ()).roomiest() is None
