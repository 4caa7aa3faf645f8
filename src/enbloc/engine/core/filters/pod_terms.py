"""The pod (anti-)affinity terms of a task, with its own labels and namespace filled in.

Two pods of one class may still have different terms: `matchLabelKeys` takes the values of the pod's own labels. A
malformed term matches no pod. What a term means for a placement is decided in `affinity` and `spread`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from enbloc.api import core
from enbloc.api.meta import LabelSelector, selector_of
from enbloc.engine.core.filters.filter import Placeable
from enbloc.engine.core.filters.stateful.pod_index import Anchor, Scope
from enbloc.units import Requirement, Selector

HARD_AFFINITY_WEIGHT: Final = 1
"""The score weight of an assigned pod's required affinity towards pods that match it: kube-scheduler's default."""

ANCHOR_VALUES: Final = 1_000
"""A selector is indexed by at most 1,000 values: one of more is evaluated for every pod
instead, which saves memory."""

CACHED_TERMS: Final = 4096
"""At most 4096 parsed terms are cached: jobs of one class may each have label values of their own, and come and go."""


class Namespaces:
    """Labels of namespaces. An unknown one has the label that every namespace has: its name."""

    def __init__(self) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}

    def labels(self, name: str) -> Mapping[str, str]:
        known = self._labels.get(name)
        return known if known is not None else {"kubernetes.io/metadata.name": name}

    def put(self, name: str, labels: Mapping[str, str]) -> bool:
        """Returns whether the labels changed."""
        full = {"kubernetes.io/metadata.name": name, **labels}
        if self.labels(name) == full:
            return False
        if labels:
            self._labels[name] = full
        else:  # or the namespace was deleted
            del self._labels[name]
        return True


class PodSelector:
    """Selects pods by namespace and labels. Equal keys select the same pods."""

    __slots__ = (
        "_in",
        "_names",
        "_namespace_selector",
        "_namespaces",
        "_none",
        "_others",
        "anchor",
        "key",
        "namespaces",
    )

    def __init__(
        self,
        selector: Selector | None,
        names: frozenset[str],
        namespace_selector: Selector | None = None,
        namespaces: Namespaces | None = None,
    ) -> None:
        # Evaluated for every pod that is placed or removed: the common operator `In` is tested without a call.
        lines = selector.requirements if selector is not None else ()
        self._none = selector is None
        self._in = tuple((line.key, frozenset(line.values)) for line in lines if line.operator == "In")
        self._others = tuple(line for line in lines if line.operator != "In")
        self._names = names
        self._namespace_selector = namespace_selector
        self._namespaces = namespaces
        self.namespaces: Scope = names if namespace_selector is None else None
        """The only namespaces in which a pod can match; `None` if they are selected by label."""
        self.anchor: Anchor = next((one for one in self._in if len(one[1]) <= ANCHOR_VALUES), None)
        facts = [one.fact if one is not None else None for one in (selector, namespace_selector)]
        self.key = blake2b(repr((facts, sorted(names))).encode(errors="backslashreplace"), digest_size=16).digest()
        """Equal for equal selectors. A digest: a selector may list many values, and its key is looked up for each."""

    def matches(self, task: Placeable) -> bool:
        if self._none:
            return False
        labels = task.labels
        for key, values in self._in:
            if labels.get(key) not in values:
                return False
        if task.namespace not in self._names and not self._selects_namespace(task.namespace):
            return False
        return all(line.matches(labels) for line in self._others) if self._others else True

    def _selects_namespace(self, name: str) -> bool:
        selector, namespaces = self._namespace_selector, self._namespaces
        return selector is not None and namespaces is not None and selector.matches(namespaces.labels(name))


class PodTerm(NamedTuple):
    """Selected pods, and the node label that defines their topology domain."""

    topology_key: str
    pods: PodSelector

    @property
    def key(self) -> tuple[str, bytes]:
        return (self.topology_key, self.pods.key)


class PodTerms(NamedTuple):
    """All terms of one pod. Weights of preferred anti-affinity terms are negative."""

    affinity: tuple[PodTerm, ...]
    anti_affinity: tuple[PodTerm, ...]
    preferred: tuple[tuple[PodTerm, int], ...]

    def __bool__(self) -> bool:
        return bool(self.affinity or self.anti_affinity or self.preferred)


NO_TERMS: Final = PodTerms((), (), ())


class TermsTable:
    """The terms of every class, parsed once for each set of label values that they depend on."""

    def __init__(self) -> None:
        self.namespaces = Namespaces()
        self._keys: dict[int, tuple[str, ...] | None] = {}
        """By class id: the label keys that its terms take values of; `None` if it has no terms."""
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
            if len(self._terms) >= CACHED_TERMS:
                self._terms.clear()
            found = self._terms[ident] = self._parse(affinity, task)
        return found

    def retain(self, class_ids: Container[int]) -> None:
        """Drops what is cached for other classes."""
        self._keys = {ident: keys for ident, keys in self._keys.items() if ident in class_ids}
        self._terms = {ident: terms for ident, terms in self._terms.items() if ident[0] in class_ids}

    def _parse(self, affinity: core.Affinity, task: Placeable) -> PodTerms:
        near, far = affinity.pod_affinity or core.PodAffinity(), affinity.pod_anti_affinity or core.PodAffinity()
        weighted = [
            (self._term(line.pod_affinity_term, task), sign * line.weight)
            for side, sign in ((near, 1), (far, -1))
            for line in side.preferred_during_scheduling_ignored_during_execution or ()
            if line.weight
        ]
        return PodTerms(
            tuple(self._term(term, task) for term in near.required_during_scheduling_ignored_during_execution or ()),
            tuple(self._term(term, task) for term in far.required_during_scheduling_ignored_during_execution or ()),
            tuple(weighted),
        )

    def _term(self, term: core.PodAffinityTerm, task: Placeable) -> PodTerm:
        names = frozenset(term.namespaces or ())
        if not names and term.namespace_selector is None:
            names = frozenset((task.namespace,))
        selector = label_selector(term.label_selector, task, term.match_label_keys, term.mismatch_label_keys)
        namespace_selector = _parsed(term.namespace_selector)
        return PodTerm(term.topology_key, PodSelector(selector, names, namespace_selector, self.namespaces))


def label_selector(
    view: LabelSelector | None,
    task: Placeable,
    same: Sequence[str] | None,
    other: Sequence[str] | None = None,
) -> Selector | None:
    """The selector, plus the requirements of `matchLabelKeys` (`same`) and `mismatchLabelKeys` (`other`).

    An API server adds those requirements to the selector when a pod is created: then they occur twice.
    """
    selector = _parsed(view)
    if selector is None:
        return None
    more = [Requirement(key, "In", [task.labels[key]]) for key in same or () if key in task.labels]
    more += [Requirement(key, "NotIn", [task.labels[key]]) for key in other or () if key in task.labels]
    return Selector([*selector.requirements, *more])


def _parsed(view: LabelSelector | None) -> Selector | None:
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
