"""Topology spread constraints."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.engine.core.filters.stateful.stateful import StatefulFilters
from enbloc.engine.core.filters.volumes import VolumeTable
from enbloc.engine.core.tables.nodes import NodeFacts, NodeTable
from engine.filters.clusters import HOST, Task, clusters, named, node, passing_masks, pod_labels, table, task

WEB = {"matchLabels": {"app": "web"}}
SKEWED = "node(s) didn't match pod topology spread constraints"
UNLABELLED = SKEWED + " (missing required label)"


def constraint(
    key: str = "zone", skew: int = 1, selector: Any = WEB, soft: bool = False, **more: Any
) -> dict[str, Any]:
    when = "ScheduleAnyway" if soft else "DoNotSchedule"
    found = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": when, **more}
    return found | ({"labelSelector": selector} if selector is not None else {})


def five_nodes() -> NodeTable:
    """Zone x has a and b, y has c, z has the tainted t; d has no zone."""
    return table(
        node("a", {"zone": "x", HOST: "a", "disk": "ssd"}),
        node("b", {"zone": "x", HOST: "b"}),
        node("c", {"zone": "y", HOST: "c", "disk": "ssd"}),
        node("d", {HOST: "d"}),
        node("t", {"zone": "z", HOST: "t"}, taints=[("k", "", "NoSchedule")]),
    )


def filters_with(nodes: NodeTable, placed: str, labels: dict[str, str], namespace: str = "default") -> StatefulFilters:
    stateful = StatefulFilters(nodes, VolumeTable())
    for i, name in enumerate(placed):
        stateful.add(task(f"{name}{i}", labels, namespace), nodes.rows[name])
    return stateful


@pytest.mark.parametrize(
    ("placed", "wanted", "spec", "expected"),
    [
        pytest.param("", [constraint()], {}, "abct", id="all domains empty"),
        pytest.param("a", [constraint()], {}, "ct", id="away from the fuller"),
        pytest.param("a", [constraint(skew=2)], {}, "abct", id="a wider skew"),
        pytest.param("abct", [constraint()], {}, "ct", id="sums over the domain"),
        pytest.param("act", [constraint()], {}, "abct", id="level again"),
        pytest.param("a", [constraint(selector=None)], {}, "abct", id="no selector counts no pod"),
        pytest.param("a", [constraint(selector={})], {}, "ct", id="an empty one counts all"),
        pytest.param("a", [constraint(HOST)], {}, "bcdt", id="by node"),
        pytest.param("ac", [constraint(), constraint(HOST)], {}, "t", id="every constraint"),
        pytest.param("act", [constraint(), constraint(HOST)], {}, "b", id="unlabelled nodes count for neither"),
        pytest.param("", [constraint(minDomains=4)], {}, "abct", id="too few domains, all empty"),
        pytest.param("act", [constraint(minDomains=4)], {}, "", id="too few domains, none empty"),
        pytest.param("act", [constraint(minDomains=3)], {}, "abct", id="domains enough"),
        pytest.param("ac", [constraint()], {"nodeSelector": {"disk": "ssd"}}, "abct", id="unusable domain ignored"),
        pytest.param("ac", [constraint(nodeAffinityPolicy="Ignore")], {"nodeSelector": {"disk": "ssd"}}, "t",
                     id="unusable domain counts"),
        pytest.param("ac", [constraint(nodeTaintsPolicy="Honor")], {}, "abct", id="tainted domain ignored"),
        pytest.param("ac", [constraint(nodeTaintsPolicy="Honor")], {"tolerations": [{"operator": "Exists"}]}, "t",
                     id="tolerated domain counts"),
        pytest.param("a", [constraint(matchLabelKeys=["rev"])], {}, "abct", id="other revision"),
        pytest.param("a", [constraint("nowhere")], {}, "", id="a label that no node has"),
        pytest.param("a", [constraint(soft=True)], {}, "abcdt", id="soft constraints forbid nothing"),
    ],
)  # fmt: skip
def test_g6_hard_spread(placed: str, wanted: list[Any], spec: dict[str, Any], expected: str) -> None:
    nodes = five_nodes()
    stateful = filters_with(nodes, placed, {"app": "web", "rev": "1"})
    new = task("new", {"app": "web", "rev": "2"}, topologySpreadConstraints=wanted, **spec)
    assert stateful.applies(new)
    assert passing_masks(nodes, stateful.masks(new)) == list(expected)


def test_g6_a_pod_that_does_not_match_itself_adds_nothing() -> None:
    nodes = five_nodes()
    stateful = filters_with(nodes, "a", {"app": "web"})
    new = task("new", {"app": "db"}, topologySpreadConstraints=[constraint()])
    assert passing_masks(nodes, stateful.masks(new)) == list("abct")


def test_g6_other_namespaces_do_not_count() -> None:
    nodes = five_nodes()
    stateful = filters_with(nodes, "a", {"app": "web"}, "other")
    new = task("new", {"app": "web"}, topologySpreadConstraints=[constraint()])
    assert passing_masks(nodes, stateful.masks(new)) == list("abct")


def test_g6_a_missing_label_is_a_reason_of_its_own() -> None:
    nodes = five_nodes()
    stateful = filters_with(nodes, "a", {"app": "web"})
    new = task("new", {"app": "web"}, topologySpreadConstraints=[constraint()])
    by_reason = {
        reason: [nodes.names[i] for i, passed in enumerate(mask) if not passed] for reason, mask in stateful.masks(new)
    }
    assert by_reason == {UNLABELLED: ["d"], SKEWED: ["a", "b"]}


def test_g6_soft_spread_prefers_the_emptier() -> None:
    nodes = five_nodes()
    stateful = filters_with(nodes, "aac", {"app": "web"})
    new = task("new", {"app": "web"}, topologySpreadConstraints=[constraint(soft=True)])
    ((kind, score),) = stateful.scores(new)
    # Crowds 2, 2, 1, 0 pods, each of weight ln(3 + 2), rounded: 3, 3, 2, 0.
    assert (kind, score.tolist()) == ("spread", [0, 0, 33, 0, 100])


def test_g6_soft_spread_is_scored_among_the_rows_that_are_allowed() -> None:
    """Of a and c, with two pods and one in their zones, each of weight ln(2 + 2), rounded: 3 and 1."""
    nodes = five_nodes()
    stateful = filters_with(nodes, "aac", {"app": "web"})
    new = task("new", {"app": "web"}, topologySpreadConstraints=[constraint(soft=True)])
    ((_, score),) = stateful.scores(new, np.array([True, False, True, False, False]))
    assert score.tolist() == [33, 0, 100, 0, 0]
    ((_, score),) = stateful.scores(new, np.array([False, False, False, True, False]))
    assert score.tolist() == [0] * 5


def test_g6_soft_spread_over_empty_domains_is_the_same_everywhere() -> None:
    nodes = five_nodes()
    new = task("new", {"app": "web"}, topologySpreadConstraints=[constraint(soft=True)])
    ((_, score),) = filters_with(nodes, "", {}).scores(new)
    assert score.tolist() == [100, 100, 100, 0, 100]


# ---- the plain way, one node after the other

some_constraint = st.builds(
    lambda key, skew, selector, soft, more: constraint(key, skew, selector, soft, **more),
    st.sampled_from(["zone", "rack", HOST]),
    st.integers(1, 2),
    st.sampled_from([WEB, {}, None]),
    st.booleans(),
    st.fixed_dictionaries(
        {},
        optional={
            "minDomains": st.integers(1, 3),
            "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
            "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
            "matchLabelKeys": st.just(["rev"]),
        },
    ),
)
Placed = list[tuple[Task, NodeFacts]]


def counted(each: dict[str, Any], new: Task, other: Task) -> bool:
    if each.get("labelSelector") is None or other.namespace != new.namespace:
        return False
    keys = [key for key in each.get("matchLabelKeys", []) if key in new.labels]
    return bool(
        each["labelSelector"].get("matchLabels", {}).items() <= other.labels.items()
        and all(other.labels.get(key) == new.labels[key] for key in keys)
    )


def eligible(each: dict[str, Any], facts: NodeFacts, selector: dict[str, str], keys: list[str]) -> bool:
    if any(key not in facts.labels for key in keys):
        return False
    if each.get("nodeAffinityPolicy") != "Ignore" and not selector.items() <= facts.labels.items():
        return False
    forbidden = any(t.effect != "PreferNoSchedule" for t in facts.taints)
    return not (each.get("nodeTaintsPolicy") == "Honor" and forbidden)


def domains(each: dict[str, Any], new: Task, placed: Placed, allowed: list[NodeFacts]) -> dict[str, int]:
    key = each["topologyKey"]
    found = {facts.labels[key]: 0 for facts in allowed}
    for other, where in placed:
        if counted(each, new, other) and where in allowed:
            found[where.labels[key]] += 1
    return found


@given(clusters(), st.data())
def test_g6_spread_as_asked_node_by_node(nodes: NodeTable, data: st.DataObject) -> None:
    alive = [facts for facts in nodes.facts if facts is not None]
    if not alive:
        return
    stateful, placed = StatefulFilters(nodes, VolumeTable()), []
    for i in range(data.draw(st.integers(0, 6))):
        each = task(str(i), data.draw(pod_labels), data.draw(st.sampled_from(["default", "n2"])))
        where = data.draw(st.sampled_from(alive))
        stateful.add(each, nodes.rows[where.name])
        placed.append((each, where))
    wanted = data.draw(st.lists(some_constraint, min_size=1, max_size=3))
    selector = data.draw(st.sampled_from([{}, {"zone": "a"}]))
    new = task("new", data.draw(pod_labels), topologySpreadConstraints=wanted, nodeSelector=selector)
    hard = [each for each in wanted if each["whenUnsatisfiable"] == "DoNotSchedule"]
    keys = [each["topologyKey"] for each in hard]

    def plainly(facts: NodeFacts) -> bool:
        for each in hard:
            if each["topologyKey"] not in facts.labels:
                return False
            found = domains(each, new, placed, [n for n in alive if eligible(each, n, selector, keys)])
            fewest = 0 if len(found) < each.get("minDomains", 1) else min(found.values())
            own = int(counted(each, new, new))
            if found.get(facts.labels[each["topologyKey"]], 0) + own - fewest > each["maxSkew"]:
                return False
        return True

    assert passing_masks(nodes, stateful.masks(new)) == named(nodes, plainly)
    soft = [each for each in wanted if each["whenUnsatisfiable"] == "ScheduleAnyway"]
    scores = dict(stateful.scores(new))
    if not soft:
        assert not scores
        return
    expected = plain_scores(soft, new, placed, alive, selector)
    assert {facts.name: scores["spread"][nodes.rows[facts.name]] for facts in alive} == expected


def plain_scores(
    soft: list[Any], new: Task, placed: Placed, alive: list[NodeFacts], selector: dict[str, str]
) -> dict[str, int]:
    keys = [each["topologyKey"] for each in soft]
    asked = [facts for facts in alive if all(key in facts.labels for key in keys)]
    crowds: dict[str, int] = {}
    for facts in asked:
        crowd = 0.0
        for each in soft:
            key = each["topologyKey"]
            if key == HOST:
                size, here = len(asked), sum(where == facts and counted(each, new, other) for other, where in placed)
            else:
                size = len({n.labels[key] for n in asked})
                sums = domains(each, new, placed, [n for n in alive if eligible(each, n, selector, keys)])
                here = sums.get(facts.labels[key], 0)
            crowd += here * math.log(size + 2) + each["maxSkew"] - 1
        crowds[facts.name] = math.floor(crowd + 0.5)
    least, most = min(crowds.values(), default=0), max(crowds.values(), default=0)
    return {
        facts.name: 0
        if facts.name not in crowds
        else 100 * (most + least - crowds[facts.name]) // most
        if most
        else 100
        for facts in alive
    }
