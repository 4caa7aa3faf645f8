"""Changes of a gang's topology: what must be in one domain may be apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from enbloc.advice.case import Case
from enbloc.advice.change import Candidates, Change, patch
from enbloc.advice.sources import recreated
from enbloc.api.meta import Obj, name_of, namespace_of

_FIELDS: Final = ("networkTopology", "schedulingConstraints", "topologyConstraint")
"""Of PodGroups and Jobs: Volcano's, Kubernetes' and KAI's."""
_PARTS: Final = ("subGroupPolicy", "subGroups", "tasks")
"""Lists whose entries may have one too."""


def without_topology(case: Case) -> Candidates:
    """Its object without the constraint; a Job is created anew, since its spec may not change so."""
    obj = case.job or case.own
    fields = list(_required(obj)) if obj is not None else []
    if obj is None or not fields:
        return
    text = f"remove {' and '.join(dict.fromkeys(fields))} from {obj['kind']} {namespace_of(obj)}/{name_of(obj)}"
    if case.job is not None:
        yield Change(text, recreated(obj, _apart))
    else:
        spec: dict[str, Any] = {key: None for key in _FIELDS if key in obj["spec"]}
        spec |= {key: [_without(part) for part in obj["spec"][key]] for key in _PARTS if obj["spec"].get(key)}
        yield Change(text, (patch(obj, {"spec": spec}),))


def _required(obj: Obj) -> Iterator[str]:
    spec = obj.get("spec") or {}
    yield from (f"spec.{key}" for key in _FIELDS if spec.get(key))
    for key in _PARTS:
        for part in spec.get(key) or ():
            yield from (f"spec.{key}[].{field}" for field in _FIELDS if isinstance(part, dict) and part.get(field))


def _without(part: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in _FIELDS}


def _apart(made: Obj) -> None:
    spec = _without(made["spec"])
    spec |= {key: [_without(part) for part in spec[key]] for key in _PARTS if spec.get(key)}
    made["spec"] = spec
