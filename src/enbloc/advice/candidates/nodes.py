"""Changes of the nodes: uncordoned, without a taint, with a label, and more of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from enbloc.advice.candidates.pods import missing_resources, taint_text
from enbloc.advice.case import Case, allocatable_of, own_taints, requests_of
from enbloc.advice.change import Candidates, Change, as_written, create, patch
from enbloc.api.meta import Obj, labels_of, name_of
from enbloc.api.reasons import PendingReason
from enbloc.engine.core.why.reporter import is_pending
from enbloc.listing import listed
from enbloc.units import format_amount, format_quantity

MOST_SHAPES = 2
MOST_NODES = 1_000
MOST_FOR_ALL = 256
BISECTIONS = 3
AHEAD = "; gangs ahead of it start there first"
HOSTNAME = "kubernetes.io/hostname"
PLAIN: Obj = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": ""},
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
}
"""A node for clusters that have none."""


def uncordoned(case: Case) -> Candidates:
    cordoned = [node for node in case.nodes if (node.get("spec") or {}).get("unschedulable")]
    if cordoned:
        text = f"uncordon {listed([name_of(node) for node in cordoned])}"
        yield Change(text, tuple(patch(node, {"spec": {"unschedulable": False}}) for node in cordoned))


def untainted(case: Case) -> Candidates:
    """Nodes without one of their taints, the taint of most nodes first."""
    for taint, nodes in list(case.tainted().items())[:2]:
        text = f"remove taint {taint_text(taint)} from {listed([name_of(node) for node in nodes])}"
        yield Change(text, tuple(patch(node, {"spec": {"taints": _rest(node, taint.key)}}) for node in nodes))


def _rest(node: Obj, key: str) -> list[Any] | None:
    return [taint for taint in node["spec"]["taints"] if taint["key"] != key] or None


def more_nodes(case: Case) -> Candidates:
    """Nodes like one that exists, in the numbers that could be enough: the fewest first."""
    for (least, most), node, made in _plans(case):
        helped = yield _added(case, node, made, least)
        while not helped and least < most:
            middle = (least + 1 + most) // 2
            if (yield _added(case, node, made, middle)):
                most = middle
                if middle == least + 1:
                    return
            else:
                least = middle
        if helped:
            return


def nodes_for_all_ahead(case: Case) -> Candidates:
    """Enough more nodes that the gangs before it, which take new room first, leave some of it."""
    others = (gang for gang in case.engine.state.gangs.values() if gang is not case.gang)
    if not any(map(is_pending, others)):
        return
    for (_, least), node, made in _plans(case)[:1]:
        most = 4 * least
        while most <= MOST_FOR_ALL and not (yield _added(case, node, made, most, AHEAD)):
            least, most = most, 4 * most
        if most > MOST_FOR_ALL:
            return
        for _ in range(BISECTIONS):
            middle = (least + 1 + most) // 2
            if middle == most:
                return
            if (yield _added(case, node, made, middle, AHEAD)):
                most = middle
            else:
                least = middle


def _plans(case: Case) -> list[tuple[tuple[int, int], Obj, Obj]]:
    """The shapes of nodes to try, the best first: how many at least and at most, a node, and a new one like it."""
    shapes: dict[tuple[tuple[str, int], ...], Obj] = {}
    if case.nodes and any(missing_resources(case).values()):
        return []  # it is misspelt
    for node in case.nodes or [PLAIN]:
        shapes.setdefault(tuple(sorted(allocatable_of(node).items())), node)
    plans = []
    for number, node in enumerate(shapes.values()):
        made = _suited(case, node)
        counts = _counts(case, allocatable_of(made))
        if counts is not None:
            enlarged = allocatable_of(made) != allocatable_of(node)
            plans.append(((enlarged, _unused(case, made)), counts, number, node, made))
    best = sorted(plans, key=lambda plan: plan[:3])[:MOST_SHAPES]
    return [(counts, node, made) for _, counts, _, node, made in best]


def _unused(case: Case, node: Obj) -> int:
    """How many kinds of devices a node has that the pods do not ask for."""
    asked = {name for spec in case.roles.values() for name in requests_of(spec)}
    return sum("/" in name and name not in asked for name in allocatable_of(node))


def _suited(case: Case, like: Obj) -> Obj:
    """A new node like another: ready, with the labels that the pods select and room for one of them, and of its taints
    only those that the pods tolerate."""
    made = as_written(like)
    made.pop("spec", None)
    kept = [taint for fact, taint in own_taints(like).items() if fact not in case.untolerated(like)]
    if kept:
        made["spec"] = {"taints": kept}
    status = like.get("status") or {}
    capacity = dict(status.get("allocatable") or status.get("capacity") or {})
    labels = {key: value for key, value in labels_of(like).items() if key != HOSTNAME}
    for spec in case.roles.values():
        labels.update(spec.get("nodeSelector") or {})
        for name, nanos in requests_of(spec).items():
            if nanos > allocatable_of(like).get(name, 0):
                capacity[name] = format_quantity(nanos)
    made["metadata"]["labels"] = labels
    made["status"] = {"allocatable": capacity, "capacity": capacity}
    return made


def _counts(case: Case, room: Mapping[str, int]) -> tuple[int, int] | None:
    """How many nodes it takes for the pods that did not fit, and for all pods of the minimum."""
    least, most = 0, 0
    for role, spec in case.roles.items():
        fit = min((room.get(name, 0) // nanos for name, nanos in requests_of(spec).items()), default=110)
        if fit <= 0:
            return None
        minimum = case.gang.minima.by_role.get(role) or case.gang.minima.total
        least += -(-min(case.needs(role), minimum) // fit)
        most += -(-minimum // fit)
    if case.why.reason is not PendingReason.UNSCHEDULABLE:
        least = 1  # it was not attempted: how many of its pods fit is not known
    return (max(1, least), max(1, most)) if most <= MOST_NODES else None


def _added(case: Case, like: Obj, made: Obj, count: int, note: str = "") -> Change:
    taken = {name_of(node) for node in case.nodes}
    names = [name for number in range(1, count + len(taken) + 1) if (name := f"more-{number}") not in taken][:count]
    nodes = [
        {**made, "metadata": {**made["metadata"], "name": name, "labels": {**labels_of(made), HOSTNAME: name}}}
        for name in names
    ]
    room, had = allocatable_of(made), allocatable_of(like)
    asked = {name for spec in case.roles.values() for name in requests_of(spec)}
    counted = [name for name in room if name != "pods" and (name != "ephemeral-storage" or name in asked)]
    shape = ", ".join(f"{name} {format_amount(name, room[name])}" for name in counted)
    differs = "" if room == had or not name_of(like) else "larger "
    wanted = {key: value for key, value in labels_of(made).items() if labels_of(like).get(key) != value}
    labelled = f" and label{'' if len(wanted) == 1 else 's'} {_pairs(wanted)}" if wanted else ""
    like_it = f" like {name_of(like)}" if name_of(like) else ""
    dropped = [taint_text(taint) for taint in case.untolerated(like)]
    bare = f", without taint{'' if len(dropped) == 1 else 's'} {listed(dropped)}" if dropped else ""
    what = f"{count} {differs}node{'' if count == 1 else 's'}{like_it} with {shape}{labelled}{bare}"
    return Change(f"add {what}{note}", tuple(create(node) for node in nodes))


def _pairs(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
