"""The API of a new embedded cluster: the store with this project's admission and the built-in queues.

Used by `enbloc sim`, `enbloc up` and tests. What reacts to the store's objects is in `settle`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable

from enbloc.admission import own_annotations
from enbloc.admission.review import admit, admit_delete
from enbloc.admission.settings import settings_of
from enbloc.api import volcano
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, name_of
from enbloc.api.volcano import BUILT_IN_QUEUES
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.admission import Operation, bootstrap, invalid
from enbloc.cluster.embedded.api.store import Store
from enbloc.config import Config


class StoreLookup:
    """Other objects, for admission: the store has all of them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        return self._store.get(kind, namespace, name)

    def list(self, kind: str) -> builtins.list[Obj]:
        return self._store.list(kind)[0]

    def complete(self, kind: str) -> bool:
        return True


def make_store(
    now: Callable[[], int],
    config: Config,
    restore: Callable[[Store], object] | None = None,
    object_bytes: int | None = None,
    guards_records: bool = False,
) -> Store:
    """A store with the namespaces and priority classes of a new cluster, on top of what `restore` loads.
    `object_bytes`: the largest object that clients may store; `None` where there are no clients. `guards_records`:
    whether users may not write the scheduler's annotations (S2)."""
    settings = settings_of(config, alone=True)

    def review(operation: Operation, obj: Obj, old: Obj | None) -> Obj:
        admitted, faults = admit(operation, obj, old, lookup, settings)
        if faults:
            raise invalid(obj, faults)
        return admitted

    def guard_records(operation: Operation, obj: Obj, old: Obj | None) -> Obj:
        if store.warnings_to_user is None:
            return obj
        guarded, warnings, faults = own_annotations.guard(obj, old)
        if faults:
            raise Refused(403, "Forbidden", "; ".join(map(str, faults)), tuple(faults))
        store.warnings_to_user += warnings
        return guarded

    def protect(obj: Obj) -> None:
        faults = admit_delete(obj, lookup)
        if faults:
            raise Refused(403, "Forbidden", "; ".join(map(str, faults)), tuple(faults))

    hooks = (guard_records, review) if guards_records else (review,)
    store = Store(now, hooks, auto_namespaces=True, deletion=(protect,), object_bytes=object_bytes)
    lookup = StoreLookup(store)
    if restore is not None:
        restore(store)
    bootstrap(store)
    return store


def provide_queues(store: Store, defined: Iterable[Obj]) -> None:
    """Creates the built-in queues that the user does not define."""
    own = {name_of(obj) for obj in defined if kind_id(obj) == volcano.QUEUE}
    for queue in BUILT_IN_QUEUES:
        if name_of(queue) not in own:
            store.provide(queue)


def refusal_text(why: Refused) -> str:
    """All faults of a refusal on one line, else its message."""
    return "; ".join(map(str, why.faults)) if why.faults else why.message
