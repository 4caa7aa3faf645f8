"""Objects that name a queue or a class which the same files create later: a cluster refuses them (N5).

`lint` sees the files as a whole and finds no fault in them; `kubectl create` and `sim` create one object after the
other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from enbloc.api import arbitrator, volcano
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Fault, Obj, Ref, name_of
from enbloc.gangs.priority_classes import PRIORITY_CLASS
from enbloc.scenario.scenario import Arrival

_QUEUE: Final = ("spec.queue", volcano.QUEUE)
_CLASS: Final = ("spec.priorityClassName", PRIORITY_CLASS)
_NAMED: Final = {
    volcano.JOB: (_QUEUE, _CLASS),
    volcano.POD_GROUP: (_QUEUE, _CLASS),
    volcano.QUEUE: (("spec.parent", volcano.QUEUE),),
    arbitrator.SCHEDULING_SPEC: (_CLASS,),
    "Pod": (_CLASS,),
}
"""Kind → the fields that admission looks up, and the kind of what they name."""


class CreationOrder:
    """When each queue and class of the files is created."""

    def __init__(self, arrivals: Iterable[Arrival]) -> None:
        self._first: dict[Ref, tuple[int, int]] = {}
        for arrival in arrivals:
            kind = kind_id(arrival.obj)
            if kind in (volcano.QUEUE, PRIORITY_CLASS):
                at = (arrival.at_ns, arrival.order)
                ref = Ref(kind, "", name_of(arrival.obj))
                self._first[ref] = min(at, self._first.get(ref, at))

    def warnings(self, obj: Obj, arrival: Arrival) -> Iterator[Fault]:
        for field, kind in _NAMED.get(kind_id(obj), ()):
            name = _value(obj, field)
            first = self._first.get(Ref(kind, "", name)) if isinstance(name, str) else None
            if first is not None and first > (arrival.at_ns, arrival.order):
                what = f"{kind.partition('.')[0]} {name!r}"
                yield Fault(
                    field, f"{what} is created later in these files, and this is refused until then: move it up"
                )


def _value(obj: Obj, path: str) -> Any:
    value: Any = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
