"""Which namespaces may use a Queue: two annotations on the Queue (S5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from enbloc.api.label_selectors import parse_labels
from enbloc.api.meta import Fault, Obj, annotations_of
from enbloc.units import Selector, is_dns_label

ALLOWED_NAMESPACES: Final = "enbloc.dev/allowed-namespaces"
"""A comma list of namespaces."""
ALLOWED_NAMESPACE_SELECTOR: Final = "enbloc.dev/allowed-namespace-selector"
"""A label selector of namespaces."""


class AllowedNamespaces(msgspec.Struct, frozen=True):
    """The namespaces that a Queue allows: those that it names, and those whose labels its selector matches. An
    annotation that is empty or cannot be read allows none."""

    names: frozenset[str] | None = None
    selector: str | None = None

    @property
    def all_allowed(self) -> bool:
        return self.names is None and self.selector is None

    def allow(self, namespace: str, labels: Mapping[str, str]) -> bool:
        if self.all_allowed or (self.names is not None and namespace in self.names):
            return True
        selector = _selector(self.selector) if self.selector else None
        return selector is not None and selector.matches({"kubernetes.io/metadata.name": namespace, **labels})


ALL_ALLOWED: Final = AllowedNamespaces()


def allowed_namespaces_of(queue: Obj) -> AllowedNamespaces:
    annotations = annotations_of(queue)
    names, selector = annotations.get(ALLOWED_NAMESPACES), annotations.get(ALLOWED_NAMESPACE_SELECTOR)
    if names is None and selector is None:
        return ALL_ALLOWED
    return AllowedNamespaces(frozenset(_names(names)) if names is not None else None, selector)


def allowed_namespaces_faults(queue: Obj) -> list[Fault]:
    """Why the annotations of a Queue cannot be read."""
    annotations, faults = annotations_of(queue), []
    for name in _names(annotations.get(ALLOWED_NAMESPACES) or ""):
        if not is_dns_label(name):
            field = f"metadata.annotations[{ALLOWED_NAMESPACES}]"
            faults.append(Fault(field, f"{name[:80]!r} is not the name of a namespace"))
    text = annotations.get(ALLOWED_NAMESPACE_SELECTOR)
    if text and _selector(text) is None:
        field = f"metadata.annotations[{ALLOWED_NAMESPACE_SELECTOR}]"
        faults.append(Fault(field, f"{text[:80]!r} is not a label selector such as team=a or team in (a,b)"))
    return faults


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _selector(text: str) -> Selector | None:
    try:
        return parse_labels(text)
    except ValueError:
        return None
