"""Whether a pod that fits on no node could fit on a further one, whatever that one is like: what an autoscaler is asked
for (E1).

A further node has room, any labels and no taints. It brings no claim that is missing or in use, and it has one value of
each label.
"""

from __future__ import annotations

from collections.abc import Sequence

from enbloc.api import core
from enbloc.engine.core.filters.stateful import exclusive_claims
from enbloc.engine.core.filters.volumes import is_of_claim
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.tasks import Task
from enbloc.units import Requirement, equality_selector, is_label_value


def could_help(state: State, task: Task) -> bool:
    if not could_help_class(state, task.cls):
        return False
    used = (not passes.any() for reason, passes in state.stateful.masks(task) if reason == exclusive_claims.REASON)
    return not (state.nodes.rows and any(used))


def could_help_class(state: State, cls: TaskClass) -> bool:
    checks = state.candidates(cls).checks
    return not any(is_of_claim(check.reason) for check in checks) and could_have_labels(cls.spec)


def could_have_labels(spec: core.PodSpec) -> bool:
    """Whether a node could have the labels that a pod requires."""
    own = equality_selector(spec.node_selector or {}).requirements
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None:
        return _are_met_together(own)
    return any(_is_met(term, own) for term in required.node_selector_terms or ())


def _is_met(term: core.NodeSelectorTerm, own: Sequence[Requirement]) -> bool:
    if not (term.match_expressions or term.match_fields):
        return False
    try:
        lines = [Requirement(line.key, line.operator, line.values or ()) for line in term.match_expressions or ()]
    except ValueError:
        return False
    return _are_met_together([*own, *lines])


def _are_met_together(lines: Sequence[Requirement]) -> bool:
    by_key: dict[str, list[Requirement]] = {}
    for line in lines:
        by_key.setdefault(line.key, []).append(line)
    return all(map(_have_a_value, by_key.values()))


def _have_a_value(lines: Sequence[Requirement]) -> bool:
    """Whether one value of a label, or a node without it, meets all of these. Its cost is linear in their values."""
    operators = {line.operator for line in lines}
    if operators <= {"NotIn", "DoesNotExist"}:
        return True
    if "DoesNotExist" in operators:
        return False
    highest, lowest = sorted(_of(lines, "Gt"), key=_bound)[-1:], sorted(_of(lines, "Lt"), key=_bound)[:1]
    allowed = [line.values for line in _of(lines, "In")]
    if not allowed:
        return not highest or not lowest or _bound(lowest[0]) - _bound(highest[0]) > 1
    bounds = highest + lowest
    left = frozenset.intersection(*allowed).difference(*(line.values for line in _of(lines, "NotIn")))
    return any(is_label_value(value) and all(line.matches({line.key: value}) for line in bounds) for value in left)


def _of(lines: Sequence[Requirement], operator: str) -> list[Requirement]:
    return [line for line in lines if line.operator == operator]


def _bound(line: Requirement) -> int:
    (text,) = line.values
    return int(text)
