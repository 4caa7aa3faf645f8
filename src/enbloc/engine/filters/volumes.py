"""Volumes that pin a pod to nodes: claims, what they are bound to, and where what they still wait for could be had.

A claim that waits for its first consumer may go where a volume of fitting size is free, or where its class can make
one. Several claims of one pod never count on the same volume; that claims of different pods do not either is for
`assumed_volumes` to see to. How much room a provisioner has left (CSI capacities, attach limits) is not known here.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.meta import LabelSelector, Obj, name_of, namespace_of, selector_of
from enbloc.engine.filters.filter import Check
from enbloc.engine.filters.node_terms import LabelTest, RowMask, every, some, terms_mask
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.nodes import NodeTable, Rows
from enbloc.engine.tables.resources import Bools
from enbloc.units import Requirement

CONFLICT: Final = "node(s) had volume node affinity conflict"
UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
LOST: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_NO_PROVISIONER: Final = ("", "kubernetes.io/no-provisioner")
_DELAYED: Final = "WaitForFirstConsumer"


class Claim(NamedTuple):
    view: core.PersistentVolumeClaim
    mode: str

    @property
    def bound(self) -> bool:
        """To a volume, and both sides know: what a user only wished for is not bound yet."""
        completed = _BIND_COMPLETED in (self.view.metadata.annotations or {})
        return bool(self.view.spec.volume_name) and (completed or _phase(self.view.status) == "Bound")

    @property
    def request(self) -> int:
        """In nano-bytes."""
        return _storage(self.view.spec.resources.requests if self.view.spec.resources else None)


class Volume(NamedTuple):
    view: core.PersistentVolume
    mode: str

    @property
    def capacity(self) -> int:
        return _storage(self.view.spec.capacity)

    def promised_to(self, claim: Claim) -> bool:
        ref, meta = self.view.spec.claim_ref, claim.view.metadata
        if ref is None or (ref.namespace, ref.name) != (meta.namespace, meta.name):
            return False
        return not ref.uid or ref.uid == meta.uid


class Wait(NamedTuple):
    """What a claim that waits for its first consumer could get, and from which rows."""

    claim: tuple[str, str]
    """Namespace and name."""
    fitting: tuple[tuple[str, RowMask], ...]
    """Free volumes, the smallest first, each with the rows that reach it."""
    made: RowMask
    """Where one can be made."""


Pick = tuple[tuple[str, str], str, Bools]
"""A claim, a volume, and the rows on which that claim would take that volume."""


def obtain(waits: Sequence[Wait], rows: Rows, assumed: Mapping[tuple[str, str], str]) -> tuple[Bools, list[Pick]]:
    """Rows on which every claim gets a volume, each the smallest that is left; `assumed` are given away already."""
    given = set(assumed.values())
    found: Bools = np.ones(len(rows), np.bool_)
    taken: dict[str, Bools] = {}
    picks: list[Pick] = []
    for wait in waits:
        own = assumed.get(wait.claim)
        settled = any(name == own for name, _ in wait.fitting)
        have: Bools = np.zeros(len(rows), np.bool_)
        for name, reach in wait.fitting:
            if name != own if settled else name in given:
                continue
            used = taken.setdefault(name, np.zeros(len(rows), np.bool_))
            take: Bools = reach(rows) & ~used & ~have
            used |= take
            have |= take
            picks.append((wait.claim, name, take))
        found &= have if settled else have | wait.made(rows)
    return found, picks


def _mode(obj: Obj) -> str:
    return (obj.get("spec") or {}).get("volumeMode") or "Filesystem"


class VolumeBook:
    """Claims, volumes and storage classes as they are now. `version` goes up with every change that can matter."""

    def __init__(self) -> None:
        self.version = 0
        self._claims: dict[tuple[str, str], Claim] = {}
        self._volumes: dict[str, Volume] = {}
        self._classes: dict[str, core.StorageClass] = {}
        self._free: dict[Hashable, list[Volume]] = {}
        """Volumes that anybody may have, by class, the smallest first."""
        self._promised: dict[Hashable, list[Volume]] = {}
        """Volumes that name a claim, by its namespace and name, the smallest first."""
        self._facts: dict[tuple[str, str, str], object] = {}

    # ---- events

    def put(self, obj: Obj) -> None:
        """A PersistentVolumeClaim, PersistentVolume or StorageClass came or changed."""
        kind, namespace, name = ident = (obj["kind"], namespace_of(obj), name_of(obj))
        facts = _facts(obj)
        if self._facts.get(ident) == facts:
            return
        match kind:
            case "PersistentVolumeClaim":
                self._claims[namespace, name] = Claim(view(obj, core.PersistentVolumeClaim), _mode(obj))
            case "PersistentVolume":
                volume = Volume(view(obj, core.PersistentVolume), _mode(obj))
                self._take_volume(name)
                self._volumes[name] = volume
                insort(self._shelf(volume).setdefault(_place(volume), []), volume, key=_size)
            case "StorageClass":
                self._classes[name] = view(obj, core.StorageClass)
            case _:
                raise ValueError(f"{kind} is no kind of the book of volumes")
        self._facts[ident] = facts
        self.version += 1

    def remove(self, kind: str, namespace: str, name: str) -> None:
        if self._facts.pop((kind, namespace, name), None) is None:
            return
        match kind:
            case "PersistentVolumeClaim":
                del self._claims[namespace, name]
            case "PersistentVolume":
                self._take_volume(name)
            case "StorageClass":
                del self._classes[name]
        self.version += 1

    def _take_volume(self, name: str) -> None:
        volume = self._volumes.pop(name, None)
        if volume is not None:
            shelf, place = self._shelf(volume), _place(volume)
            del shelf[place][bisect_left(shelf[place], _size(volume), key=_size)]
            if not shelf[place]:
                del shelf[place]

    def _shelf(self, volume: Volume) -> dict[Hashable, list[Volume]]:
        return self._free if volume.view.spec.claim_ref is None else self._promised

    # ---- asked

    def claims_of(self, cls: TaskClass) -> list[str]:
        """The claims that the class names, each once. Those of ephemeral volumes are each pod's own: not among them."""
        sources = [volume.persistent_volume_claim for volume in cls.spec.volumes or ()]
        return list(dict.fromkeys(source.claim_name for source in sources if source is not None))

    def claims_to_select(self, cls: TaskClass) -> list[str]:
        """Those that get their selected node when a task of the class is placed."""
        found: list[str] = []
        for name in self.claims_of(cls):
            claim = self._claims.get((cls.namespace, name))
            if claim is not None and self._waits(claim) and not _selected(claim):
                found.append(name)
        return found

    def ephemeral_to_select(self, cls: TaskClass) -> list[str]:
        """Names of ephemeral volumes whose claims (`POD-VOLUME`) get their selected node when a task is placed."""
        delayed = [
            (volume.name, self._classes.get(_template_class(volume.ephemeral)))
            for volume in cls.spec.volumes or ()
            if volume.ephemeral is not None
        ]
        return [name for name, storage in delayed if storage and storage.volume_binding_mode == _DELAYED]

    def exclusive_claims_of(self, cls: TaskClass) -> list[str]:
        """Those that one pod at a time may use."""
        return [
            name
            for name in self.claims_of(cls)
            if (claim := self._claims.get((cls.namespace, name))) is not None
            and "ReadWriteOncePod" in (claim.view.spec.access_modes or ())
        ]

    def checks(self, cls: TaskClass, nodes: NodeTable) -> list[Check]:
        """As of this version: with another one they must be built anew."""
        found: list[Check] = []
        for name in self.claims_of(cls):
            claim = self._claims.get((cls.namespace, name))
            fault = self._fault(name, claim)
            if fault or claim is None:
                found.append(_nowhere(fault))
            elif claim.bound:
                pinned = self._volumes[claim.view.spec.volume_name].view.spec.node_affinity
                if pinned is not None and pinned.required is not None:
                    found.append(Check(CONFLICT, terms_mask(pinned.required, nodes)))
        waits = self.waits_of(cls, nodes)
        if waits:
            found.append(Check(NO_VOLUME, lambda rows: obtain(waits, rows, {})[0]))
        for volume in cls.spec.volumes or ():
            if volume.ephemeral is not None:
                found += self._ephemeral(_template_class(volume.ephemeral), nodes)
        return found

    def waits_of(self, cls: TaskClass, nodes: NodeTable) -> list[Wait]:
        """What its claims that wait for a node could get, as of this version: small claims first."""
        named = [self._claims.get((cls.namespace, name)) for name in self.claims_of(cls)]
        waiting = [claim for claim in named if claim is not None and self._waits(claim)]
        return [self._wait(claim, nodes) for claim in sorted(waiting, key=lambda claim: claim.request)]

    def is_waiting(self, namespace: str, name: str) -> bool:
        """Whether the claim is there, and waits for a node."""
        claim = self._claims.get((namespace, name))
        return claim is not None and self._waits(claim)

    # ---- inside

    def _fault(self, name: str, claim: Claim | None) -> str:
        """Why no node at all will do; empty if some may."""
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.view.metadata.deletion_timestamp:
            return f'persistentvolumeclaim "{name}" is being deleted'
        volume = claim.view.spec.volume_name
        if _phase(claim.view.status) == "Lost":
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        if claim.bound:
            return "" if volume in self._volumes else LOST
        storage = claim.view.spec.storage_class_name or ""
        if storage and storage not in self._classes and not volume:
            return f'storageclass.storage.k8s.io "{storage}" not found'
        return "" if self._waits(claim) else UNBOUND

    def _waits(self, claim: Claim) -> bool:
        """For its first consumer. One that names a volume itself waits for that, and not for a node."""
        if claim.view.spec.volume_name or claim.view.metadata.deletion_timestamp:
            return False
        storage = self._classes.get(claim.view.spec.storage_class_name or "")
        return storage is not None and storage.volume_binding_mode == _DELAYED

    def _wait(self, claim: Claim, nodes: NodeTable) -> Wait:
        meta, node = claim.view.metadata, _selected(claim)
        there: list[RowMask] = [_only(node, nodes)] if node else []
        storage = self._classes[claim.view.spec.storage_class_name or ""]
        maker = storage.provisioner not in _NO_PROVISIONER
        fitting: list[tuple[str, RowMask]] = []
        if not (node and maker):  # else a volume is being made for it already
            for volume in self._fitting(claim):
                fitting.append((volume.view.metadata.name, every([*there, _reach(volume, nodes)])))
        made = every([*there, _topologies(storage, nodes)]) if maker else some([])
        return Wait((meta.namespace, meta.name), tuple(fitting), made)

    def _fitting(self, claim: Claim) -> list[Volume]:
        """Free volumes the claim could be bound to, the smallest first; only the one promised to it, if there is."""
        meta, request = claim.view.metadata, claim.request
        for volume in self._promised.get((meta.namespace, meta.name), ()):
            if volume.capacity >= request and volume.promised_to(claim):
                return [volume]
        free = self._free.get(claim.view.spec.storage_class_name or "", [])
        labels_match = _label_test(claim.view.spec.selector)
        modes = set(claim.view.spec.access_modes or ())
        return [
            volume
            for volume in free[bisect_left(free, (request, ""), key=_size) :]
            if _phase(volume.view.status) == "Available"
            and not volume.view.metadata.deletion_timestamp
            and volume.mode == claim.mode
            and modes <= set(volume.view.spec.access_modes or ())
            and labels_match(volume.view.metadata.labels or {})
        ]

    def _ephemeral(self, storage_class: str, nodes: NodeTable) -> list[Check]:
        """A volume made for each pod: only where its class may make one is known before there is a claim."""
        if not storage_class:
            return []
        storage = self._classes.get(storage_class)
        if storage is None:
            return [_nowhere(f'storageclass.storage.k8s.io "{storage_class}" not found')]
        return [Check(NO_VOLUME, _topologies(storage, nodes))] if storage.allowed_topologies else []


def _size(volume: Volume) -> tuple[int, str]:
    """What volumes are sorted by: no two are equal."""
    return (volume.capacity, volume.view.metadata.name)


def _place(volume: Volume) -> Hashable:
    """Where whoever may have a volume looks for it: under its class, or under the claim that it names."""
    ref = volume.view.spec.claim_ref
    return volume.view.spec.storage_class_name if ref is None else (ref.namespace, ref.name)


def _topologies(storage: core.StorageClass, nodes: NodeTable) -> RowMask:
    """Alternatives, of which an empty one allows nothing; a class that names none allows every node."""
    if not storage.allowed_topologies:
        return every([])
    masks: list[RowMask] = []
    for term in storage.allowed_topologies:
        lines = term.match_label_expressions or ()
        if lines and all(line.values for line in lines):
            masks.append(every([LabelTest(Requirement(line.key, "In", line.values), nodes) for line in lines]))
    return some(masks)


def _reach(volume: Volume, nodes: NodeTable) -> RowMask:
    pinned = volume.view.spec.node_affinity
    return terms_mask(pinned.required, nodes) if pinned is not None and pinned.required is not None else every([])


def _only(node: str, nodes: NodeTable) -> RowMask:
    def mask(rows: Rows) -> Bools:
        found: Bools = rows == nodes.rows.get(node, -1)
        return found

    return mask


def _nowhere(reason: str) -> Check:
    return Check(reason, some([]))


def _selected(claim: Claim) -> str:
    return (claim.view.metadata.annotations or {}).get(SELECTED_NODE, "")


def _label_test(selector: LabelSelector | None) -> Callable[[dict[str, str]], bool]:
    """A claim without a selector takes any volume; one whose selector cannot be read takes none."""
    if selector is None:
        return lambda labels: True
    try:
        readable = selector_of(selector)
    except ValueError:
        return lambda labels: False
    return lambda labels: readable is not None and readable.matches(labels)


def _template_class(ephemeral: dict[str, Any] | None) -> str:
    template = (ephemeral or {}).get("volumeClaimTemplate") or {}
    return (template.get("spec") or {}).get("storageClassName") or ""


def _phase(status: core.PhaseStatus | None) -> str:
    return status.phase if status is not None else ""


def _storage(quantities: Any) -> int:
    """Of a map of quantities; none is asked for, or offered, where it is missing."""
    found = (quantities or {}).get("storage")
    return found.nanos if found is not None else 0


def _facts(obj: Obj) -> object:
    """All of an object but what changes with every write."""
    metadata = obj["metadata"]
    kept = {key: metadata.get(key) for key in ("uid", "labels", "annotations", "deletionTimestamp")}
    rest = {key: part for key, part in obj.items() if key not in ("metadata", "status")}
    return kept, rest, (obj.get("status") or {}).get("phase")
