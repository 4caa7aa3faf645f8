"""All stateful filters together: what is added and taken back leaves no trace, whatever happens to the nodes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from enbloc.engine.core.filters.stateful.stateful import StatefulFilters
from enbloc.engine.core.filters.volumes import VolumeTable
from engine.filters.clusters import HOST, Task, node, passing_masks, pod_labels, settle, table, task

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SPECS: list[dict[str, Any]] = [
    {},
    {"containers": [{"ports": [{"hostPort": 80}]}]},
    {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
    {"affinity": {"podAffinity": {REQUIRED: [TERM]}}},
    {"affinity": {"podAntiAffinity": {REQUIRED: [TERM, {**TERM, "matchLabelKeys": ["rev"]}]}}},
    {"affinity": {"podAffinity": {PREFERRED: [{"weight": 3, "podAffinityTerm": TERM}]}}},
    {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **TERM}]},
]
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteOncePod"]},
}
specs = st.sampled_from(SPECS)


def rebuilt(placed: dict[str, tuple[Task, str]], nodes: Any, volumes: VolumeTable) -> StatefulFilters:
    found = StatefulFilters(nodes, volumes)
    for each, name in placed.values():
        if name in nodes.rows:
            found.add(each, nodes.rows[name])
    return found


def answers(stateful: StatefulFilters, asked: list[Task]) -> list[Any]:
    return [
        (
            stateful.applies(each),
            [(reason, mask.tolist()) for reason, mask in stateful.masks(each)],
            [(kind, score.tolist()) for kind, score in stateful.scores(each)],
        )
        for each in asked
    ]


@given(st.data())
def test_g6_counts_are_right_after_any_events(data: st.DataObject) -> None:
    """Compared with filters that only get the final placements."""
    nodes = table(*[node(f"n{i}", {"zone": "ab"[i % 2], HOST: f"n{i}"}, created_ns=10 * i) for i in range(3)])
    volumes = VolumeTable()
    volumes.put(CLAIM)
    stateful = StatefulFilters(nodes, volumes)
    placed: dict[str, tuple[Task, str]] = {}
    for step in range(data.draw(st.integers(0, 12))):
        asked = [task("new", data.draw(pod_labels), **data.draw(specs))]
        match data.draw(st.sampled_from(["add", "add", "remove", "label", "gone", "node", "ask"])):
            case "add" if nodes.rows:
                name = data.draw(st.sampled_from(sorted(nodes.rows)))
                placed[f"p{step}"] = (task(f"p{step}", data.draw(pod_labels), **data.draw(specs)), name)
                stateful.add(placed[f"p{step}"][0], nodes.rows[name])
            case "remove" if placed:
                each, name = placed.pop(data.draw(st.sampled_from(sorted(placed))))
                stateful.remove(each, nodes.rows.get(name, 0))
            case "label" if nodes.rows:
                name = data.draw(st.sampled_from(sorted(nodes.rows)))
                known = nodes.facts[nodes.rows[name]]
                assert known is not None
                nodes.put(
                    node(name, {**known.labels, "zone": data.draw(st.sampled_from("abc"))}, created_ns=known.created_ns)
                )
            case "gone" if nodes.rows:
                nodes.remove(data.draw(st.sampled_from(sorted(nodes.rows))))
            case "node":
                name = data.draw(st.sampled_from(["n0", "n1", "n4", "n5"]))
                nodes.put(node(name, {"zone": "a", HOST: name}, created_ns=data.draw(st.integers(0, 50))))
                settle(nodes)
            case _:
                answers(stateful, asked)
        stateful.validate()
    asked = [task("new", labels, **spec) for spec in SPECS for labels in ({"app": "web", "rev": "1"}, {})]
    claims = [each for each, name in placed.values() if each.cls.spec.volumes and name not in nodes.rows]
    asked = [each for each in asked if not (claims and each.cls.spec.volumes)]  # held also from a node that has gone
    for each in asked:
        masks, expected = stateful.masks(each), rebuilt(placed, nodes, volumes).masks(each)
        assert passing_masks(nodes, masks) == passing_masks(nodes, expected)
        scores = [dict(which.scores(each)) for which in (stateful, rebuilt(placed, nodes, volumes))]
        for kind in ("affinity", "spread"):
            mine, other = (found[kind].tolist() if kind in found else None for found in scores)
            assert mine == other or (not any(mine or []) and not any(other or []))


@given(st.lists(st.tuples(pod_labels, specs, st.integers(0, 2)), max_size=8), st.randoms(use_true_random=False))
def test_g6_what_is_added_and_taken_back_leaves_no_trace(plan: list[Any], order: Any) -> None:
    nodes = table(*[node(f"n{i}", {"zone": "ab"[i % 2]}) for i in range(3)])
    volumes = VolumeTable()
    volumes.put(CLAIM)
    stateful = StatefulFilters(nodes, volumes)
    base = len(plan) // 2
    tasks = [(task(str(i), labels, **spec), row) for i, (labels, spec, row) in enumerate(plan)]
    for each in tasks[:base]:
        stateful.add(*each)
    asked = [task("new", {"app": "web"}, **spec) for spec in SPECS]
    before, answered = stateful.digest(), answers(stateful, asked)
    for each in tasks[base:]:
        stateful.add(*each)
        answers(stateful, asked)
    back = tasks[base:]
    order.shuffle(back)
    for each in back:
        stateful.remove(*each)
    stateful.validate()
    assert stateful.digest() == before
    assert answers(stateful, asked) == answered
    for each in tasks[:base]:
        stateful.remove(*each)
    assert stateful.digest() == StatefulFilters(nodes, volumes).digest()
