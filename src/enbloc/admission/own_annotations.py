"""Annotations that only the scheduler writes are not taken from users (S2): stripped from what they create, kept where
they leave them out, and refused where they change them. Which user is one of our components is the caller's to know.
"""

from __future__ import annotations

from typing import Final

from enbloc.api.meta import Fault, Obj, annotations_of
from enbloc.gangs.own_annotations import OWN_ANNOTATIONS

_WHOSE: Final = "is written by the scheduler only"


def guard(obj: Obj, old: Obj | None) -> tuple[Obj, list[str], list[Fault]]:
    """What a user writes (`old`: in place of what), with our annotations as they were; warnings; faults."""
    annotations = annotations_of(obj)
    known = annotations_of(old) if old is not None else {}
    if OWN_ANNOTATIONS.isdisjoint(annotations) and OWN_ANNOTATIONS.isdisjoint(known):
        return obj, [], []
    ours = {key: text for key, text in known.items() if key in OWN_ANNOTATIONS}
    given = {key: text for key, text in annotations.items() if key in OWN_ANNOTATIONS}
    if given == ours:
        return obj, [], []
    if old is not None and (changed := sorted(key for key in given if given[key] != ours.get(key))):
        return obj, [], [Fault(f"metadata.annotations[{key}]", f"{_WHOSE}: leave it as it is") for key in changed]
    done = "kept" if old is not None else "removed"
    warnings = [f"metadata.annotations[{key}] {_WHOSE}: it was {done}" for key in sorted(given.keys() ^ ours.keys())]
    others = {key: text for key, text in annotations.items() if key not in OWN_ANNOTATIONS}
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**others, **ours}}}, warnings, []
