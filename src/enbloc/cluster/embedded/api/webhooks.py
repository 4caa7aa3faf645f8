"""Webhooks of others, as the store sees them: which concern a write, and what they answered.

The store never waits. A write that webhooks must answer first is not stored: `Question` is raised, the caller asks them
(`http/webhook_calls.py`) and repeats the write with the same `Review`, which has the answers. A write that became
another one meanwhile is asked anew. Without a `Review` no webhook is asked: writes of nodes, of the scheduler and of
the garbage collector.

After a mutating webhook changed an object, the API's own admission runs again on it; validating webhooks see what it
left. Not as in Kubernetes: writes of the status and of other subresources are not reviewed, a change of `scale` is
reviewed as an update of the object, and `matchConditions` cannot be evaluated, which counts as no answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from enbloc.api.admission_webhooks import (
    MUTATING,
    VALIDATING,
    Rule,
    Webhook,
    configuration_faults,
    read_configuration,
)
from enbloc.api.kinds import Kind, kind_id
from enbloc.api.meta import Fault, Obj, labels_of, selector_of
from enbloc.cluster.embedded.api.admission import AdmissionHook, Operation, invalid
from enbloc.cluster.embedded.api.identity import conflict, with_identity
from enbloc.units import Selector

if TYPE_CHECKING:
    from enbloc.cluster.embedded.api.store import Store

Stage = Literal["mutating", "validating"]
Reviewed = Literal["CREATE", "UPDATE", "DELETE"]

MOST_QUESTIONS: Final = 5
"""A write whose object changes more often while webhooks are asked is refused."""
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_KINDS: Final[dict[Stage, str]] = {"mutating": MUTATING, "validating": VALIDATING}
_EVERYTHING: Final = Selector(())


class Question(Exception):
    """A write is not stored because webhooks must be asked."""

    def __init__(self, stage: Stage, operation: Reviewed, obj: Obj, old: Obj | None, *, is_dry_run: bool) -> None:
        super().__init__(f"webhooks must be asked about {kind_id(obj)} {obj['metadata'].get('name')}")
        self.stage: Stage = stage
        self.operation: Reviewed = operation
        self.obj = obj
        self.old = old
        self.is_dry_run = is_dry_run

    def about(self) -> tuple[str, str, str, str, str]:
        metadata = self.obj["metadata"]
        return self.stage, self.operation, kind_id(self.obj), metadata.get("namespace") or "", metadata.get("name")

    def is_same(self, other: Question) -> bool:
        return (
            self.about() == other.about()
            and _content(self.obj) == _content(other.obj)
            and _content(self.old) == _content(other.old)
        )


class Review:
    """The answers of webhooks to one write, over its attempts."""

    def __init__(self, user: str, groups: Sequence[str] = ()) -> None:
        self.user = user
        self.groups = tuple(groups)
        self.name = ""
        """The name that was generated for the object; it stays the same over the attempts."""
        self.warnings: list[str] = []
        self._answers: list[tuple[Question, Obj]] = []

    def answer(self, question: Question) -> Obj:
        """The object as the webhooks left it. Raises the question if they were not asked yet."""
        for known, answer in self._answers:
            if known.is_same(question):
                return answer
        if sum(known.about() == question.about() for known, _ in self._answers) >= MOST_QUESTIONS:
            raise conflict("the object kept changing while webhooks were asked; try again")
        raise question

    def record(self, question: Question, answer: Obj) -> None:
        self._answers.append((question, answer))


class Registered(msgspec.Struct, frozen=True):
    """A webhook of a configuration."""

    hook: Webhook
    namespaces: Selector
    objects: Selector

    def version(self, operation: Reviewed, kind: Kind, version: str, *, namespaced: bool) -> str | None:
        """The version in which it wants objects of that kind; `None`: its rules do not match."""
        for rule in self.hook.rules or ():
            if not _matches(rule, operation, kind, namespaced):
                continue
            if version in rule.api_versions or "*" in rule.api_versions:
                return version
            if self.hook.match_policy != "Exact":
                other = next((one for one in kind.versions if one in rule.api_versions), None)
                if other is not None:
                    return other
        return None


class Webhooks:
    """The webhooks of a store's configurations, as an admission hook behind `before`."""

    def __init__(self, store: Store, before: Sequence[AdmissionHook]) -> None:
        self._store = store
        self._before = tuple(before)
        self._read: dict[tuple[str, str], tuple[str, list[Registered]]] = {}
        """By kind and name: the version of a configuration, and its webhooks."""

    def admit(self, operation: Operation, obj: Obj, old: Obj | None) -> Obj:
        kind = kind_id(obj)
        if kind in (MUTATING, VALIDATING):
            _check_configuration(obj)
            return obj
        review = self._store.review
        if review is None:
            return obj
        if self._concern("mutating", operation, obj, old):
            answer = review.answer(self._question("mutating", operation, obj, old))
            if _content(answer) != _content(obj):
                obj = self._again(operation, answer, obj, old)
        if self._concern("validating", operation, obj, old):
            review.answer(self._question("validating", operation, obj, old))
        return obj

    def admit_delete(self, obj: Obj) -> None:
        review = self._store.review
        if review is None or kind_id(obj) in (MUTATING, VALIDATING):
            return
        stages: tuple[Stage, ...] = ("mutating", "validating")
        for stage in stages:
            if self._concern(stage, "DELETE", obj, obj):
                review.answer(self._question(stage, "DELETE", obj, obj))

    def wanted_version(self, one: Registered, operation: Reviewed, obj: Obj, old: Obj | None) -> str | None:
        """The version in which a webhook wants the object of a write; `None`: the write does not concern it."""
        kind = self._store.discovery.find(kind_id(obj))
        if kind is None:
            return None
        namespaced = bool(obj["metadata"].get("namespace"))
        version = one.version(operation, kind, obj["apiVersion"].rpartition("/")[2], namespaced=namespaced)
        if version is None:
            return None
        labels = self._namespace_labels(kind, obj)
        if labels is not None and not one.namespaces.matches(labels):
            return None
        selected = one.objects.matches(labels_of(obj)) or (old is not None and one.objects.matches(labels_of(old)))
        return version if selected else None

    def _concern(self, stage: Stage, operation: Reviewed, obj: Obj, old: Obj | None) -> bool:
        return any(self.wanted_version(one, operation, obj, old) is not None for one in self.registered(stage))

    def _question(self, stage: Stage, operation: Reviewed, obj: Obj, old: Obj | None) -> Question:
        return Question(stage, operation, obj, old, is_dry_run=self._store.is_dry_run)

    def _again(self, operation: Operation, answer: Obj, asked: Obj, old: Obj | None) -> Obj:
        """The API's own admission on what webhooks made of an object; its identity and status stay."""
        had = asked["metadata"]
        metadata = {key: value for key, value in answer["metadata"].items() if key != "resourceVersion"}
        for key in ("name", "namespace", "managedFields"):
            metadata.pop(key, None)
            if key in had:
                metadata[key] = had[key]
        obj = {**answer, "metadata": metadata}
        if old is not None:
            obj = with_identity(self._store.discovery.resource(kind_id(old)), old, obj)
        if "status" in asked:
            obj = {**obj, "status": asked["status"]}
        else:
            obj.pop("status", None)
        for hook in self._before:
            obj = hook(operation, obj, old)
        return obj

    def _namespace_labels(self, kind: Kind, obj: Obj) -> Mapping[str, str] | None:
        """Those that a namespaceSelector is compared with; `None`: it does not apply."""
        if kind.id == "Namespace":
            return {NAMESPACE_NAME: obj["metadata"]["name"], **labels_of(obj)}
        if not kind.namespaced:
            return None
        name = obj["metadata"].get("namespace") or ""
        namespace = self._store.get("Namespace", "", name)
        return {NAMESPACE_NAME: name, **(labels_of(namespace) if namespace is not None else {})}

    def registered(self, stage: Stage) -> Iterator[Registered]:
        """All webhooks of a stage, in the order in which they are called."""
        kind = _KINDS[stage]
        for configuration in self._store.list(kind)[0]:
            metadata = configuration["metadata"]
            key = kind, metadata["name"]
            known = self._read.get(key)
            if known is None or known[0] != metadata["resourceVersion"]:
                known = self._read[key] = (metadata["resourceVersion"], _webhooks_of(configuration))
            yield from known[1]


def _webhooks_of(configuration: Obj) -> list[Registered]:
    return [
        Registered(
            hook, selector_of(hook.namespace_selector) or _EVERYTHING, selector_of(hook.object_selector) or _EVERYTHING
        )
        for hook in read_configuration(configuration).webhooks or ()
    ]


def _check_configuration(obj: Obj) -> None:
    try:
        faults = configuration_faults(read_configuration(obj))
    except msgspec.ValidationError as why:
        faults = [Fault("webhooks", str(why))]
    if faults:
        raise invalid(obj, faults)


def _matches(rule: Rule, operation: Reviewed, kind: Kind, namespaced: bool) -> bool:
    scope = {"Namespaced": namespaced, "Cluster": not namespaced}.get(rule.scope or "*", True)
    return (
        scope
        and not {operation, "*"}.isdisjoint(rule.operations)
        and not {kind.group, "*"}.isdisjoint(rule.api_groups)
        and not {kind.plural, "*", "*/*"}.isdisjoint(rule.resources)
    )


def _content(obj: Obj | None) -> dict[str, Any]:
    """What a webhook is asked about: without what the server writes, and others meanwhile."""
    if obj is None:
        return {}
    ignored = ("managedFields", "resourceVersion", "generation")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ignored}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}
