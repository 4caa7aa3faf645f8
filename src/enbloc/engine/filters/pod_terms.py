"""What a pod says of other pods: the terms of its affinity, with its own labels and namespace filled in.

Two pods of one class may still have different terms: `matchLabelKeys` takes the values of the pod's own labels. What
cannot be read matches nobody. What a term means for a placement is `affinity`'s business, and `spread`'s.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final, NamedTuple

from enbloc.api import core
from enbloc.api.meta import LabelSelector, selector_of
from enbloc.engine.filters.filter import Placeable
from enbloc.engine.filters.stateful.pod_index import Anchor, Scope
from enbloc.units import Requirement, Selector

HARD_AFFINITY_WEIGHT: Final = 1
"""How much a placed pod's required affinity draws those that match it: kube-scheduler's default."""

TERMS_BOUND: Final = 4096
"""Terms are read anew past so many: jobs of one class may each have label values of their own, and come and go."""

_Fact = tuple[tuple[str, str, tuple[str, ...]], ...]


class Namespaces:
    """Labels of namespaces. One that was never heard of has the label that every namespace has: its name."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}

    def labels(self, name: str) -> Mapping[str, str]:
        known = self._labels.get(name)
        return known if known is not None else {"kubernetes.io/metadata.name": name}

    def put(self, name: str, labels: Mapping[str, str]) -> bool:
        """Says whether anything changed."""
        full = {"kubernetes.io/metadata.name": name, **labels}
        if self.labels(name) == full:
            return False
        if labels:
            self._labels[name] = full
        else:  # or it went
            del self._labels[name]
        return True


class PodFilter:
    """Which pods are meant: those in some namespaces, whose labels match. Equal keys mean the same pods."""

    __slots__ = ("_all", "_chosen", "_names", "_nobody", "_one_of", "_others", "anchor", "key", "namespaces")

    def __init__(
        self,
        selector: Selector | None,
        names: frozenset[str],
        chosen: Selector | None = None,
        namespaces: Namespaces | None = None,
    ) -> None:
        # Asked of every pod that comes or goes: the common lines are therefore looked up without a call.
        lines = selector.requirements if selector is not None else ()
        self._nobody = selector is None
        self._one_of = tuple((line.key, frozenset(line.values)) for line in lines if line.operator == "In")
        self._others = tuple(line for line in lines if line.operator != "In")
        self._names = names
        self._chosen = chosen
        self._all = namespaces
        self.namespaces: Scope = names if chosen is None else None
        """The only ones in which a pod can be meant; `None` if that goes by their labels."""
        self.anchor: Anchor = self._one_of[0] if self._one_of else None
        self.key: tuple[_Fact | None, tuple[str, ...], _Fact | None] = (
            selector.fact if selector is not None else None,
            tuple(sorted(names)),
            chosen.fact if chosen is not None else None,
        )

    def matches(self, task: Placeable) -> bool:
        if self._nobody:
            return False
        labels = task.labels
        for key, values in self._one_of:
            if labels.get(key) not in values:
                return False
        if task.namespace not in self._names:
            if self._chosen is None or self._all is None or not self._chosen.matches(self._all.labels(task.namespace)):
                return False
        return all(line.matches(labels) for line in self._others) if self._others else True


class PodTerm(NamedTuple):
    """Pods, and the label whose value says what is near them."""

    topology_key: str
    pods: PodFilter

    @property
    def fact(self) -> tuple[object, ...]:
        return (self.topology_key, *self.pods.key)


class PodTerms(NamedTuple):
    """All terms of one pod. Weights of preferred anti-affinity are negative."""

    affinity: tuple[PodTerm, ...]
    anti_affinity: tuple[PodTerm, ...]
    preferred: tuple[tuple[PodTerm, int], ...]

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.preferred)


NO_TERMS: Final = PodTerms((), (), ())


class TermsTable:
    """The terms of every class, read once for each set of label values that they depend on."""

    def __init__(self) -> None:
        self.namespaces = Namespaces()
        self._keys: dict[int, tuple[str, ...] | None] = {}
        """By class: the labels of its own that its terms depend on; `None` if it has no terms."""
        self._terms: dict[tuple[object, ...], PodTerms] = {}

    def of(self, task: Placeable) -> PodTerms:
        cls = task.cls
        affinity = cls.spec.affinity
        if affinity is None:
            return NO_TERMS
        keys = self._keys.get(cls.id, ())
        if cls.id not in self._keys:
            keys = self._keys[cls.id] = _label_keys(affinity)
        if keys is None:
            return NO_TERMS
        ident = (cls.id, *[task.labels.get(key) for key in keys])
        found = self._terms.get(ident)
        if found is None:
            if len(self._terms) >= TERMS_BOUND:
                self._terms.clear()
            found = self._terms[ident] = self._read(affinity, task)
        return found

    def keep(self, alive: Container[int]) -> None:
        """Classes that are not among these are gone."""
        self._keys = {ident: keys for ident, keys in self._keys.items() if ident in alive}
        self._terms = {ident: terms for ident, terms in self._terms.items() if ident[0] in alive}

    def _read(self, affinity: core.Affinity, task: Placeable) -> PodTerms:
        near, far = affinity.pod_affinity or core.PodAffinity(), affinity.pod_anti_affinity or core.PodAffinity()
        weighed = [
            (self._term(line.pod_affinity_term, task), sign * line.weight)
            for side, sign in ((near, 1), (far, -1))
            for line in side.preferred_during_scheduling_ignored_during_execution or ()
            if line.weight
        ]
        return PodTerms(
            tuple(self._term(term, task) for term in near.required_during_scheduling_ignored_during_execution or ()),
            tuple(self._term(term, task) for term in far.required_during_scheduling_ignored_during_execution or ()),
            tuple(weighed),
        )

    def _term(self, term: core.PodAffinityTerm, task: Placeable) -> PodTerm:
        names = frozenset(term.namespaces or ())
        if not names and term.namespace_selector is None:
            names = frozenset((task.namespace,))
        selector = pod_selector(term.label_selector, task, term.match_label_keys, term.mismatch_label_keys)
        chosen = _readable(term.namespace_selector)
        return PodTerm(term.topology_key, PodFilter(selector, names, chosen, self.namespaces))


def pod_selector(
    view: LabelSelector | None,
    task: Placeable,
    same: Sequence[str] | None,
    other: Sequence[str] | None = None,
) -> Selector | None:
    """The selector, and besides the task's own value of the labels `same`, and not that of `other`.

    An API server writes those lines into the selector itself when a pod is created: then they are there twice.
    """
    selector = _readable(view)
    if selector is None:
        return None
    more = [Requirement(key, "In", [task.labels[key]]) for key in same or () if key in task.labels]
    more += [Requirement(key, "NotIn", [task.labels[key]]) for key in other or () if key in task.labels]
    return Selector([*selector.requirements, *more])


def _readable(view: LabelSelector | None) -> Selector | None:
    try:
        return selector_of(view)
    except ValueError:
        return None


def _label_keys(affinity: core.Affinity) -> tuple[str, ...] | None:
    terms: list[core.PodAffinityTerm] = []
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if side is not None:
            terms += side.required_during_scheduling_ignored_during_execution or ()
            preferred = side.preferred_during_scheduling_ignored_during_execution or ()
            terms += [line.pod_affinity_term for line in preferred]
    if not terms:
        return None
    return tuple(sorted({key for t in terms for key in [*(t.match_label_keys or ()), *(t.mismatch_label_keys or ())]}))
