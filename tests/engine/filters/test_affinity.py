"""Affinity and anti-affinity between pods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.engine.core.filters import pod_terms
from enbloc.engine.core.filters.stateful.stateful import StatefulFilters
from enbloc.engine.core.filters.volumes import VolumeTable
from enbloc.engine.core.tables.nodes import NodeFacts, NodeTable
from engine.filters.clusters import (
    HOST,
    Task,
    clusters,
    named,
    node,
    passing_masks,
    pod_labels,
    settle,
    table,
    task,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NEAR = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
KEPT_OFF = "node(s) didn't satisfy existing pods anti-affinity rules"
WEB = {"matchLabels": {"app": "web"}}


def term(selector: Any = WEB, key: str = "zone", **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, **({"labelSelector": selector} if selector is not None else {}), **more}


def near(*terms: Any) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def apart(*terms: Any) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def liking(side: str, *terms: tuple[int, Any]) -> dict[str, Any]:
    return {side: {PREFERRED: [{"weight": weight, "podAffinityTerm": each} for weight, each in terms]}}


def three_nodes() -> NodeTable:
    """Two in zone x, one in zone y, one in none."""
    return table(
        node("a", {"zone": "x", HOST: "a"}),
        node("b", {"zone": "x", HOST: "b"}),
        node("c", {"zone": "y", HOST: "c"}),
        node("d", {HOST: "d"}),
    )


def filters_with(nodes: NodeTable, *placed: tuple[Task, str]) -> StatefulFilters:
    stateful = StatefulFilters(nodes, VolumeTable())
    for each, name in placed:
        stateful.add(each, nodes.rows[name])
    return stateful


web, db = {"app": "web"}, {"app": "db"}


@pytest.mark.parametrize(
    ("affinity", "labels", "expected"),
    [
        pytest.param(near(term()), db, "ab", id="near"),
        pytest.param(near(term(key=HOST)), db, "a", id="near on the same node"),
        pytest.param(near(term(), term(key=HOST)), db, "a", id="every term"),
        pytest.param(near(term({"matchLabels": {"app": "none"}})), db, "", id="no pod matches"),
        pytest.param(near(term({"matchLabels": {"app": "new"}})), {"app": "new"}, "abc", id="first of its kind"),
        pytest.param(near(term()), web, "ab", id="not the first of its kind"),
        pytest.param(near(term({})), db, "abc", id="an empty selector matches all"),
        pytest.param(near(term(None)), db, "", id="no selector matches none"),
        pytest.param(near(term({"matchExpressions": [{"key": "app", "operator": "Like"}]})), db, "", id="unreadable"),
        pytest.param(apart(term()), db, "cd", id="apart"),
        pytest.param(apart(term(key=HOST)), db, "bcd", id="apart by node"),
        pytest.param(apart(term(None)), db, "abcd", id="apart from no pod"),
        pytest.param(near(term(namespaces=["other"])), db, "c", id="other namespace"),
        pytest.param(near(term(namespaceSelector={})), db, "abc", id="every namespace"),
        pytest.param(near(term(namespaceSelector={"matchLabels": {"team": "t"}})), db, "c", id="namespaces by label"),
        pytest.param(near(term({}, matchLabelKeys=["app"])), web, "ab", id="own label's value"),
        pytest.param(near(term({}, mismatchLabelKeys=["app"])), web, "c", id="not own label's value"),
        pytest.param(near(term({}, matchLabelKeys=["none"])), web, "abc", id="a label it does not have"),
    ],
)  # fmt: skip
def test_g6_pod_affinity(affinity: Any, labels: dict[str, str], expected: str) -> None:
    nodes = three_nodes()
    stateful = filters_with(nodes, (task("1", web), "a"), (task("2", web, "other"), "c"), (task("3", db), "c"))
    stateful.set_namespace("other", {"team": "t"})
    new = task("new", labels, affinity=affinity)
    assert stateful.applies(new)
    assert passing_masks(nodes, stateful.masks(new)) == list(expected)


def test_g6_a_task_that_matches_one_of_two_terms_satisfies_neither() -> None:
    nodes = three_nodes()
    stateful = filters_with(nodes, (task("1", web), "a"), (task("2", {"app": "web", "rev": "1"}), "c"))
    both = near(term(), term({"matchLabels": {"rev": "1"}}))
    assert passing_masks(nodes, stateful.masks(task("new", db, affinity=both))) == ["c"]


def test_g6_a_task_is_not_the_first_of_its_kind_if_one_is_in_a_domain_of_any_term() -> None:
    """The other is on a node without the label of the second term: beside it there is no place for both terms."""
    nodes = table(node("a", {HOST: "a"}), node("b", {HOST: "b", "zone": "x"}))
    both = near(term(key=HOST), term())
    assert passing_masks(nodes, filters_with(nodes).masks(task("new", web, affinity=both))) == ["b"]
    stateful = filters_with(nodes, (task("1", web), "a"))
    assert passing_masks(nodes, stateful.masks(task("new", web, affinity=both))) == []


def test_g6_terms_of_placed_tasks_stay_with_their_nodes_as_others_are_added() -> None:
    """Far more nodes than there was space for at first."""
    nodes = table(node("a", {"zone": "x"}), node("b", {"zone": "y"}))
    placed = task("1", db, affinity=liking("podAffinity", (5, term())) | apart(term({"matchLabels": db})))
    stateful = filters_with(nodes, (placed, "b"))
    for number in range(60):
        nodes.put(node(f"n{number}", {"zone": "y" if number == 59 else "z"}, created_ns=1 + number))
    settle(nodes)
    assert passing_masks(nodes, stateful.masks(task("new", db))) == ["a", *(f"n{number}" for number in range(59))]
    ((_, score),) = stateful.scores(task("new", web))
    assert [nodes.names[row] for row in range(nodes.count) if score[row]] == ["b", "n59"]


def test_g6_counts_follow_rows_that_are_renumbered_while_their_number_stays() -> None:
    nodes = table(*(node(name, {HOST: name}, created_ns=5) for name in "abc"))
    stateful = filters_with(
        nodes, (task("1", web), "b"), (task("2", db, affinity=apart(term({"matchLabels": db}, HOST))), "b")
    )
    new = task("new", web, affinity=near(term(key=HOST)))
    assert passing_masks(nodes, stateful.masks(new)) == ["b"]
    nodes.remove("c")
    nodes.put(node("z", {HOST: "z"}, created_ns=1))
    settle(nodes)
    assert nodes.names == ["z", "a", "b"]
    assert passing_masks(nodes, stateful.masks(new)) == ["b"]
    assert passing_masks(nodes, stateful.masks(task("3", db))) == ["z", "a"]


def test_g6_parsed_terms_are_bounded_and_dropped_with_their_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value of a label that the terms take is parsed for itself."""
    monkeypatch.setattr(pod_terms, "CACHED_TERMS", 3)
    terms = pod_terms.TermsTable()
    tasks = [task(str(n), {"rev": str(n)}, affinity=near(term(matchLabelKeys=["rev"]))) for n in range(9)]
    for one in tasks:
        assert terms.of(one).affinity[0].pods.matches(task("other", {"app": "web", **one.labels}))
        assert len(terms._terms) <= 3
    other = task("other", web, affinity=near(term({"matchLabels": db})))
    terms.of(other)
    terms.retain({other.cls.id})
    assert {ident for ident, *_ in terms._terms} == terms._keys.keys() == {other.cls.id}


def test_g6_placed_tasks_keep_others_off() -> None:
    nodes = three_nodes()
    stateful = filters_with(nodes, (task("1", db, affinity=apart(term())), "a"))
    assert not stateful.applies(task("2", db))
    assert not stateful.applies(task("2", web, "other"))
    assert stateful.applies(task("2", web))
    ((reason, mask),) = stateful.masks(task("2", web))
    assert (reason, mask.tolist()) == (KEPT_OFF, [False, False, True, True])


def test_g6_reasons_are_distinguished() -> None:
    nodes = three_nodes()
    stateful = filters_with(nodes, (task("1", web, affinity=apart(term())), "a"))
    new = task("2", web, affinity=near(term()) | apart(term()))
    assert [reason for reason, _ in stateful.masks(new)] == [NEAR, APART, KEPT_OFF]


def test_g6_the_filter_does_not_apply_where_no_pod_has_terms() -> None:
    stateful = filters_with(three_nodes(), (task("1", web), "a"))
    assert not stateful.applies(task("2", web))
    assert stateful.masks(task("2", web)) == []
    assert stateful.scores(task("2", web)) == []


def test_g6_counts_follow_labels_namespaces_and_rows() -> None:
    nodes = three_nodes()
    stateful = filters_with(nodes, (task("1", web), "a"))
    new = task("2", db, affinity=near(term(namespaceSelector={"matchLabels": {"team": "t"}})))
    assert passing_masks(nodes, stateful.masks(new)) == []
    stateful.set_namespace("default", {"team": "t"})
    assert passing_masks(nodes, stateful.masks(new)) == ["a", "b"]
    nodes.put(node("a", {"zone": "y"}))
    assert passing_masks(nodes, stateful.masks(new)) == ["a", "c"]
    nodes.put(node("A", {"zone": "y"}))
    settle(nodes)
    assert nodes.names[0] == "A"
    assert passing_masks(nodes, stateful.masks(new)) == ["A", "a", "c"]
    nodes.remove("a")
    assert passing_masks(nodes, stateful.masks(new)) == []
    nodes.put(node("a", {"zone": "x"}, created_ns=9))
    settle(nodes)
    assert passing_masks(nodes, stateful.masks(new)) == ["b", "a"]
    stateful.validate()


@pytest.mark.parametrize(
    ("existing", "affinity", "expected"),
    [
        pytest.param({}, liking("podAffinity", (10, term())), [100, 100, 0, 0], id="liked"),
        pytest.param({}, liking("podAntiAffinity", (10, term())), [0, 0, 100, 100], id="disliked"),
        pytest.param({}, liking("podAffinity", (30, term()), (10, term(key=HOST))), [100, 75, 0, 0], id="weighed"),
        pytest.param(liking("podAffinity", (5, term(key=HOST))), {}, [100, 0, 0, 0], id="liked by a placed one"),
        pytest.param(liking("podAntiAffinity", (5, term(key=HOST))), {}, [0, 100, 100, 100], id="disliked by one"),
        pytest.param(near(term()), {}, [100, 100, 0, 0], id="a placed one needs the like of it"),
    ],
)
def test_g6_preferred_pod_affinity(existing: Any, affinity: Any, expected: list[int]) -> None:
    nodes = three_nodes()
    stateful = filters_with(nodes, (task("1", web, affinity=existing), "a"))
    ((kind, score),) = stateful.scores(task("2", web, affinity=affinity))
    assert (kind, score.tolist()) == ("affinity", expected)


def test_g6_scores_are_spread_over_the_rows_asked_about() -> None:
    nodes = three_nodes()
    stateful = filters_with(nodes, (task("1", web), "a"))
    new = task("2", affinity=liking("podAffinity", (30, term()), (10, term(key=HOST))))
    only = nodes.alive[: nodes.count].copy()
    only[0] = False
    ((_, score),) = stateful.scores(new, only)
    assert score.tolist() == [0, 100, 0, 0]


# ---- the plain way, one node after the other

EITHER = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}
LABELLED = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
selectors = st.sampled_from(
    [WEB, {"matchLabels": {"app": "db"}}, {}, None, {"matchLabels": {"rev": "1"}}, EITHER, LABELLED]
)
extras = st.sampled_from(
    [
        {},
        {"namespaces": ["n2"]},
        {"namespaceSelector": {}},
        {"namespaceSelector": {"matchLabels": {"t": "2"}}},
        {"matchLabelKeys": ["rev"]},
        {"mismatchLabelKeys": ["rev"]},
    ]
)
terms = st.builds(lambda s, k, more: term(s, k, **more), selectors, st.sampled_from(["zone", HOST]), extras)
some_terms = st.lists(terms, max_size=2)
weighed = st.lists(st.tuples(st.integers(1, 9), terms), max_size=1)


@st.composite
def affinities(draw: st.DrawFn) -> dict[str, Any]:
    near_pref, apart_pref = liking("podAffinity", *draw(weighed)), liking("podAntiAffinity", *draw(weighed))
    return {
        "podAffinity": near(*draw(some_terms))["podAffinity"] | near_pref["podAffinity"],
        "podAntiAffinity": apart(*draw(some_terms))["podAntiAffinity"] | apart_pref["podAntiAffinity"],
    }


NAMESPACES: dict[str, dict[str, str]] = {"default": {}, "n2": {"t": "2"}}


def meant(each: dict[str, Any], owner: Task, other: Task) -> bool:
    chosen = each.get("namespaceSelector")
    names = each.get("namespaces") or ([] if chosen is not None else [owner.namespace])
    by_label = chosen is not None and (chosen.get("matchLabels") or {}).items() <= NAMESPACES[other.namespace].items()
    selector = each.get("labelSelector")
    if selector is None or not (other.namespace in names or by_label):
        return False
    for key in each.get("matchLabelKeys", []):
        if key in owner.labels and other.labels.get(key) != owner.labels[key]:
            return False
    for key in each.get("mismatchLabelKeys", []):
        if key in owner.labels and other.labels.get(key) == owner.labels[key]:
            return False
    for line in selector.get("matchExpressions", []):
        if other.labels.get(line["key"]) not in line.get("values", [other.labels.get(line["key"], "")]):
            return False
    return bool((selector.get("matchLabels") or {}).items() <= other.labels.items())


Placed = tuple[Task, dict[str, Any], NodeFacts]


def together(one: NodeFacts, two: NodeFacts, key: str) -> bool:
    return key in one.labels and one.labels.get(key) == two.labels.get(key)


def plainly(new: Task, affinity: dict[str, Any], placed: list[Placed], facts: NodeFacts) -> bool:
    wanted, unwanted = affinity["podAffinity"][REQUIRED], affinity["podAntiAffinity"][REQUIRED]
    matching = [where for other, _, where in placed if all(meant(t, new, other) for t in wanted)]
    unmatched = not any(t["topologyKey"] in where.labels for where in matching for t in wanted)
    first = unmatched and all(meant(t, new, new) for t in wanted)
    for t in wanted:
        if t["topologyKey"] not in facts.labels:
            return False
        if not first and not any(together(facts, where, t["topologyKey"]) for where in matching):
            return False
    for other, theirs, where in placed:
        if any(meant(t, new, other) and together(facts, where, t["topologyKey"]) for t in unwanted):
            return False
        for t in theirs["podAntiAffinity"][REQUIRED]:
            if meant(t, other, new) and together(facts, where, t["topologyKey"]):
                return False
    return True


def plain_score(new: Task, affinity: dict[str, Any], placed: list[Placed], facts: NodeFacts) -> int:
    total = 0
    for other, theirs, where in placed:
        for side, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
            for line in affinity[side][PREFERRED]:
                t = line["podAffinityTerm"]
                total += sign * line["weight"] * (meant(t, new, other) and together(facts, where, t["topologyKey"]))
            for line in theirs[side][PREFERRED]:
                t = line["podAffinityTerm"]
                total += sign * line["weight"] * (meant(t, other, new) and together(facts, where, t["topologyKey"]))
        for t in theirs["podAffinity"][REQUIRED]:
            total += meant(t, other, new) and together(facts, where, t["topologyKey"])
    return total


@given(clusters(), st.data())
def test_g6_affinity_as_asked_node_by_node(nodes: NodeTable, data: st.DataObject) -> None:
    alive = [facts for facts in nodes.facts if facts is not None]
    if not alive:
        return
    stateful = StatefulFilters(nodes, VolumeTable())
    for name, labels in NAMESPACES.items():
        stateful.set_namespace(name, labels)

    def drawn(uid: str) -> tuple[Task, dict[str, Any]]:
        affinity = data.draw(affinities())
        return task(
            uid, data.draw(pod_labels), data.draw(st.sampled_from(["default", "n2"])), affinity=affinity
        ), affinity

    new, affinity = drawn("new")
    placed: list[Placed] = []
    for i in range(data.draw(st.integers(0, 4))):
        each, theirs = drawn(str(i))
        where = data.draw(st.sampled_from(alive))
        stateful.add(each, nodes.rows[where.name])
        placed.append((each, theirs, where))
        if data.draw(st.booleans()):
            stateful.masks(new)  # counts that exist already are kept up, others are taken later
    stateful.validate()
    expected = named(nodes, lambda facts: plainly(new, affinity, placed, facts))
    assert passing_masks(nodes, stateful.masks(new)) == expected
    raw = {facts.name: plain_score(new, affinity, placed, facts) for facts in alive}
    least, most = min(raw.values()), max(raw.values())
    scores = dict(stateful.scores(new))
    found = scores["affinity"].tolist() if "affinity" in scores else [0] * nodes.count
    for name, value in raw.items():
        assert found[nodes.rows[name]] == (100 * (value - least) // (most - least) if most > least else 0)


def test_no_preferred_term_gives_no_score() -> None:
    """Such classes are scored without a look at other pods."""
    nodes = three_nodes()
    stateful = filters_with(nodes, (task("placed", web), "a"))
    assert stateful.scores(task("near", db, affinity=near(term()))) == []
    assert len(stateful.scores(task("likes", db, affinity=liking("podAffinity", (1, term()))))) == 1


def test_g6_a_pod_with_terms_leaves_after_nodes_were_renumbered() -> None:
    """Older nodes were added meanwhile: its node has another, higher row."""
    nodes = table(node("z", {"zone": "x", HOST: "z"}))
    guard = task("guard", web, affinity=apart(term()))
    stateful = filters_with(nodes, (guard, "z"))
    stateful.digest()
    for index in range(200):
        nodes.put(node(f"a{index}", {"zone": "x", HOST: f"a{index}"}))
    settle(nodes)
    assert nodes.rows["z"] > 100
    stateful.remove(guard, nodes.rows["z"])
    assert len(passing_masks(nodes, stateful.masks(task("next", web)))) == 201


def test_scores_are_whole_numbers() -> None:
    """A node with one of three matches has 33 points, not a third more: no float decides."""
    nodes = table(*(node(name, {"zone": name}) for name in "abc"))
    placed = [(task(str(index), web), name) for index, name in enumerate("bccc")]
    stateful = filters_with(nodes, *placed)
    ((_, score),) = stateful.scores(task("likes", db, affinity=liking("podAffinity", (1, term()))))
    assert score.tolist() == [0, 33, 100]
