"""The eviction subresource: deletes a pod if its disruption budgets allow it."""

from __future__ import annotations

from collections.abc import Iterator

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.meta import Fault, Obj, is_terminating, labels_of, name_of, selector_of
from enbloc.cluster.embedded.api.pods import POD, is_finished
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.http.status import refusal
from enbloc.controllers.workloads.pod_state import is_ready
from enbloc.units import Selector

BUDGET = "PodDisruptionBudget.policy"


def check_budgets(store: Store, pod: Obj) -> None:
    """Raises `Refused` (429) if a budget would be violated. Pods that do not run violate none."""
    if is_finished(pod) or is_terminating(pod) or not pod["spec"].get("nodeName"):
        return
    namespace = pod["metadata"]["namespace"]
    for budget, spec, selector in _budgets(store, namespace):
        if not selector.matches(labels_of(pod)):
            continue
        covered = [
            one for one in store.list(POD, namespace)[0] if selector.matches(labels_of(one)) and not is_finished(one)
        ]
        healthy = sum(1 for one in covered if is_ready(one))
        needed = _needed(spec, len(covered))
        if healthy - (1 if is_ready(pod) else 0) < needed:
            message = f"The disruption budget {name_of(budget)} needs {needed} healthy pods and has {healthy} currently"
            raise refusal(
                429,
                "Cannot evict pod as it would violate the pod's disruption budget.",
                Fault("DisruptionBudget", message),
            )


def _budgets(store: Store, namespace: str) -> Iterator[tuple[Obj, core.PodDisruptionBudgetSpec, Selector]]:
    for budget in store.list(BUDGET, namespace)[0]:
        spec = view(budget, core.PodDisruptionBudget).spec
        try:
            selector = selector_of(spec.selector)
        except ValueError:
            continue  # an invalid selector selects nothing
        if selector is not None:
            yield budget, spec, selector


def _needed(spec: core.PodDisruptionBudgetSpec, total: int) -> int:
    if spec.max_unavailable is not None:
        return max(total - _amount(spec.max_unavailable, total), 0)
    return _amount(spec.min_available if spec.min_available is not None else 0, total)


def _amount(value: int | str, total: int) -> int:
    """A number, or a percentage of the total, rounded up."""
    if isinstance(value, int):
        return max(value, 0)
    digits = value.removesuffix("%")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 9:
        return total
    return -(-int(digits) * total // 100) if value.endswith("%") else int(digits)
