"""Volume binding: on which nodes the PersistentVolumeClaims of a pod are, or can be, bound to a volume.

A claim that waits for its first consumer can be bound where an available volume of sufficient size is reachable, or
where its StorageClass can provision one. Several claims of one pod never use the same volume; `assumed_volumes` ensures
the same across pods. Capacity of provisioners and attach limits (CSI) are not considered.

A gang is bound without waiting for provisioners. kube-scheduler waits for them; for a gang that would be a hold of all
members that no object records. A pod whose volume is missing waits on its node, as it does for an image.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.meta import LabelSelector, Obj, name_of, namespace_of, selector_of
from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.filters.node_terms import LabelMask, RowMask, all_of, any_of, terms_mask
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import NodeTable, Rows
from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.events import NODE_EVENTS, VOLUME_EVENTS, ClusterEvent, EventKind
from enbloc.units import Requirement

CONFLICT: Final = "node(s) had volume node affinity conflict"
UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
LOST: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_NO_PROVISIONER: Final = ("", "kubernetes.io/no-provisioner")
_WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"

WAKES_ON: Final = NODE_EVENTS | VOLUME_EVENTS
"""Events after which the claims of a pod may be bound, or bindable, on more nodes."""


class VolumeClaim(NamedTuple):
    view: core.PersistentVolumeClaim
    mode: str

    @property
    def bound(self) -> bool:
        """Whether claim and volume are bound to each other: `volumeName` alone is only a request."""
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

    def is_prebound_to(self, claim: VolumeClaim) -> bool:
        """Whether its `claimRef`, which has the claim's name, is of this claim and not of an earlier one."""
        ref = self.view.spec.claim_ref
        return ref is not None and (not ref.uid or ref.uid == claim.view.metadata.uid)


class UnboundClaim(NamedTuple):
    """A claim that waits for its first consumer: the volumes it could be bound to, and from which rows."""

    claim: tuple[str, str]
    """Namespace and name."""
    available: tuple[tuple[str, RowMask], ...]
    """Available volumes, the smallest first, each with the rows that reach it."""
    provisionable: RowMask
    """The rows for which its StorageClass can provision a volume."""


Pick = tuple[tuple[str, str], str, Bools]
"""A claim, a volume, and the rows on which that claim would be bound to that volume."""


def find_volumes(
    claims: Sequence[UnboundClaim], rows: Rows, assumed: Mapping[tuple[str, str], str]
) -> tuple[Bools, list[Pick]]:
    """Rows on which every claim gets a volume, each the smallest that is left. `assumed`, claim → volume, are taken."""
    assumed_volumes = set(assumed.values())
    found: Bools = np.ones(len(rows), np.bool_)
    picked: dict[str, Bools] = {}
    picks: list[Pick] = []
    for unbound in claims:
        own = assumed.get(unbound.claim)
        has_own = any(name == own for name, _ in unbound.available)
        satisfied: Bools = np.zeros(len(rows), np.bool_)
        for name, reachable in unbound.available:
            if name != own if has_own else name in assumed_volumes:
                continue
            used = picked.setdefault(name, np.zeros(len(rows), np.bool_))
            pick: Bools = reachable(rows) & ~used & ~satisfied
            used |= pick
            satisfied |= pick
            picks.append((unbound.claim, name, pick))
        found &= satisfied if has_own else satisfied | unbound.provisionable(rows)
    return found, picks


def _mode(obj: Obj) -> str:
    return (obj.get("spec") or {}).get("volumeMode") or "Filesystem"


class VolumeTable:
    """Claims, volumes and storage classes. `version` increases with every change that can matter."""

    def __init__(self) -> None:
        self.version = 0
        self._claims: dict[tuple[str, str], VolumeClaim] = {}
        self._volumes: dict[str, Volume] = {}
        self._classes: dict[str, core.StorageClass] = {}
        self._free: dict[Hashable, list[Volume]] = {}
        """Volumes without a `claimRef`, by StorageClass, the smallest first."""
        self._prebound: dict[Hashable, list[Volume]] = {}
        """Volumes with a `claimRef`, by its namespace and name, the smallest first."""
        self._facts: dict[tuple[str, str, str], object] = {}

    # ---- events

    def put(self, obj: Obj) -> None:
        """A PersistentVolumeClaim, PersistentVolume or StorageClass was created or changed."""
        kind, namespace, name = ident = (obj["kind"], namespace_of(obj), name_of(obj))
        facts = _facts(obj)
        if self._facts.get(ident) == facts:
            return
        match kind:
            case "PersistentVolumeClaim":
                self._claims[namespace, name] = VolumeClaim(view(obj, core.PersistentVolumeClaim), _mode(obj))
            case "PersistentVolume":
                volume = Volume(view(obj, core.PersistentVolume), _mode(obj))
                self._remove_volume(name)
                self._volumes[name] = volume
                insort(self._index(volume).setdefault(_index_key(volume), []), volume, key=_size)
            case "StorageClass":
                self._classes[name] = view(obj, core.StorageClass)
            case _:
                raise ValueError(f"{kind} has nothing to do with volumes")
        self._facts[ident] = facts
        self.version += 1

    def remove(self, kind: str, namespace: str, name: str) -> None:
        if self._facts.pop((kind, namespace, name), None) is None:
            return
        match kind:
            case "PersistentVolumeClaim":
                del self._claims[namespace, name]
            case "PersistentVolume":
                self._remove_volume(name)
            case "StorageClass":
                del self._classes[name]
        self.version += 1

    def _remove_volume(self, name: str) -> None:
        volume = self._volumes.pop(name, None)
        if volume is not None:
            index, key = self._index(volume), _index_key(volume)
            del index[key][bisect_left(index[key], _size(volume), key=_size)]
            if not index[key]:
                del index[key]

    def _index(self, volume: Volume) -> dict[Hashable, list[Volume]]:
        return self._free if volume.view.spec.claim_ref is None else self._prebound

    # ---- queries

    def claims_of(self, cls: TaskClass) -> list[str]:
        """The claims that the class names, each once; without those of ephemeral volumes, which are each pod's own."""
        sources = [volume.persistent_volume_claim for volume in cls.spec.volumes or ()]
        return list(dict.fromkeys(source.claim_name for source in sources if source is not None))

    def claims_to_select(self, cls: TaskClass) -> list[str]:
        """The claims whose `selected-node` is set when a task of the class is placed."""
        found: list[str] = []
        for name in self.claims_of(cls):
            claim = self._claims.get((cls.namespace, name))
            if claim is not None and self._waits(claim) and not _selected_node(claim):
                found.append(name)
        return found

    def ephemeral_to_select(self, cls: TaskClass) -> list[str]:
        """The ephemeral volumes whose claims (`POD-VOLUME`) get a `selected-node` when a task is placed."""
        classes = [
            (volume.name, self._classes.get(_template_class(volume.ephemeral)))
            for volume in cls.spec.volumes or ()
            if volume.ephemeral is not None
        ]
        return [
            name for name, storage in classes if storage and storage.volume_binding_mode == _WAIT_FOR_FIRST_CONSUMER
        ]

    def exclusive_claims_of(self, cls: TaskClass) -> list[str]:
        """The claims that one pod at a time may use (ReadWriteOncePod)."""
        return [
            name
            for name in self.claims_of(cls)
            if (claim := self._claims.get((cls.namespace, name))) is not None
            and "ReadWriteOncePod" in (claim.view.spec.access_modes or ())
        ]

    def checks(self, cls: TaskClass, nodes: NodeTable) -> list[Check]:
        """Valid for the present `version` only."""
        found: list[Check] = []
        for name in self.claims_of(cls):
            claim = self._claims.get((cls.namespace, name))
            fault = self._fault(name, claim)
            if fault or claim is None:
                found.append(_never(fault))
            elif claim.bound:
                pinned = self._volumes[claim.view.spec.volume_name].view.spec.node_affinity
                if pinned is not None and pinned.required is not None:
                    found.append(Check(CONFLICT, terms_mask(pinned.required, nodes), WAKES_ON))
        unbound = self.unbound_claims(cls, nodes)
        if unbound:
            found.append(Check(NO_VOLUME, lambda rows: find_volumes(unbound, rows, {})[0], WAKES_ON))
        for volume in cls.spec.volumes or ():
            if volume.ephemeral is not None:
                found += self._ephemeral(_template_class(volume.ephemeral), nodes)
        return found

    def unbound_claims(self, cls: TaskClass, nodes: NodeTable) -> list[UnboundClaim]:
        """The claims that wait for a node, the smallest first. Valid for the present `version` only."""
        named = [self._claims.get((cls.namespace, name)) for name in self.claims_of(cls)]
        waiting = [claim for claim in named if claim is not None and self._waits(claim)]
        return [self._unbound(claim, nodes) for claim in sorted(waiting, key=lambda claim: claim.request)]

    def is_waiting(self, namespace: str, name: str) -> bool:
        """Whether the claim exists and waits for its first consumer."""
        claim = self._claims.get((namespace, name))
        return claim is not None and self._waits(claim)

    def wakes_on(self, cls: TaskClass) -> frozenset[EventKind]:
        """The events about volumes that can help a class, now or together with later ones."""
        return WAKES_ON if cls.spec.volumes else frozenset()

    def may_help(self, cls: TaskClass, event: ClusterEvent) -> bool:
        """Whether an event about volumes concerns a class: it has volumes, and names the claim if the event does."""
        if not cls.spec.volumes or event.kind not in VOLUME_EVENTS:
            return False
        if event.subject is None:
            return True
        namespace, name = event.subject
        return cls.namespace == namespace and name in self.claims_of(cls)

    # ---- internals

    def _fault(self, name: str, claim: VolumeClaim | None) -> str:
        """Why no node can be used; empty if some can."""
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

    def _waits(self, claim: VolumeClaim) -> bool:
        """Whether it waits for its first consumer. A claim with `volumeName` waits for that volume, not for a node."""
        if claim.view.spec.volume_name or claim.view.metadata.deletion_timestamp:
            return False
        storage = self._classes.get(claim.view.spec.storage_class_name or "")
        return storage is not None and storage.volume_binding_mode == _WAIT_FOR_FIRST_CONSUMER

    def _unbound(self, claim: VolumeClaim, nodes: NodeTable) -> UnboundClaim:
        meta, node = claim.view.metadata, _selected_node(claim)
        selected: list[RowMask] = [_only(node, nodes)] if node else []
        storage = self._classes[claim.view.spec.storage_class_name or ""]
        provisions = storage.provisioner not in _NO_PROVISIONER
        available: list[tuple[str, RowMask]] = []
        if not (node and provisions):  # else a volume is being provisioned already
            for volume in self._available(claim):
                available.append((volume.view.metadata.name, all_of([*selected, _reachable(volume, nodes)])))
        provisionable = all_of([*selected, _topologies(storage, nodes)]) if provisions else any_of([])
        return UnboundClaim((meta.namespace, meta.name), tuple(available), provisionable)

    def _available(self, claim: VolumeClaim) -> list[Volume]:
        """Volumes the claim could be bound to, the smallest first; if one is pre-bound to it, only that one."""
        meta, request = claim.view.metadata, claim.request
        for volume in self._prebound.get((meta.namespace, meta.name), ()):
            if volume.capacity >= request and volume.is_prebound_to(claim):
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
        """A volume provisioned for each pod: before its claim exists, only the topologies of its class are known."""
        if not storage_class:
            return []
        storage = self._classes.get(storage_class)
        if storage is None:
            return [_never(f'storageclass.storage.k8s.io "{storage_class}" not found')]
        return [Check(NO_VOLUME, _topologies(storage, nodes), WAKES_ON)] if storage.allowed_topologies else []


def is_of_claim(reason: str) -> bool:
    """Whether the reason is a claim's, and would be given for any node."""
    return reason in (UNBOUND, LOST) or reason.startswith(("persistentvolumeclaim ", "storageclass."))


def _size(volume: Volume) -> tuple[int, str]:
    """Sort key of volumes: no two are equal."""
    return (volume.capacity, volume.view.metadata.name)


def _index_key(volume: Volume) -> Hashable:
    """Its StorageClass, or the claim that it is pre-bound to."""
    ref = volume.view.spec.claim_ref
    return volume.view.spec.storage_class_name if ref is None else (ref.namespace, ref.name)


def _topologies(storage: core.StorageClass, nodes: NodeTable) -> RowMask:
    """`allowedTopologies` are alternatives; an empty one matches no node; without any, every node is allowed."""
    if not storage.allowed_topologies:
        return all_of([])
    masks: list[RowMask] = []
    for term in storage.allowed_topologies:
        lines = term.match_label_expressions or ()
        if lines and all(line.values for line in lines):
            masks.append(all_of([LabelMask(Requirement(line.key, "In", line.values), nodes) for line in lines]))
    return any_of(masks)


def _reachable(volume: Volume, nodes: NodeTable) -> RowMask:
    pinned = volume.view.spec.node_affinity
    return terms_mask(pinned.required, nodes) if pinned is not None and pinned.required is not None else all_of([])


def _only(node: str, nodes: NodeTable) -> RowMask:
    def mask(rows: Rows) -> Bools:
        found: Bools = rows == nodes.rows.get(node, -1)
        return found

    return mask


def _never(reason: str) -> Check:
    return Check(reason, any_of([]), WAKES_ON)


def _selected_node(claim: VolumeClaim) -> str:
    return (claim.view.metadata.annotations or {}).get(SELECTED_NODE, "")


def _label_test(selector: LabelSelector | None) -> Callable[[dict[str, str]], bool]:
    """A claim without a selector matches any volume; one with a malformed selector matches none."""
    if selector is None:
        return lambda labels: True
    try:
        parsed = selector_of(selector)
    except ValueError:
        return lambda labels: False
    return lambda labels: parsed is not None and parsed.matches(labels)


def _template_class(ephemeral: dict[str, Any]) -> str:
    template = ephemeral.get("volumeClaimTemplate") or {}
    return (template.get("spec") or {}).get("storageClassName") or ""


def _phase(status: core.PhaseStatus | None) -> str:
    return status.phase if status is not None else ""


def _storage(quantities: Any) -> int:
    """The amount of `storage` in a map of quantities, 0 if missing."""
    found = (quantities or {}).get("storage")
    return found.nanos if found is not None else 0


def _facts(obj: Obj) -> object:
    """An object without what changes with every write: equal facts, no relevant change."""
    metadata = obj["metadata"]
    meta = {key: metadata.get(key) for key in ("uid", "labels", "annotations", "deletionTimestamp")}
    rest = {key: part for key, part in obj.items() if key not in ("metadata", "status")}
    return meta, rest, (obj.get("status") or {}).get("phase")
