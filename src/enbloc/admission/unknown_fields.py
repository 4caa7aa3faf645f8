"""Fields that are not known, with the nearest known name (N2).

Of our kinds, a known field is one that we read, or one of the peer's release that this version does not read. Of
Kubernetes' own kinds, and of pod templates anywhere, it is one that its API server knows.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, Final

import msgspec.inspect

from enbloc.api import arbitrator, coscheduling, kai, koordinator, kubernetes, topology, volcano, yunikorn
from enbloc.api.core import PodTemplate
from enbloc.api.kinds import KINDS, kind_id
from enbloc.api.messages import json_fields, message_of
from enbloc.api.meta import Fault, Obj, annotations_of, labels_of
from enbloc.api.peer_fields import UNREAD, Schema
from enbloc.config.values import nearest
from enbloc.gangs import hints
from enbloc.gangs.compatibility import FIELDS

_CHECKED: Final = (
    volcano.JOB,
    volcano.POD_GROUP,
    volcano.QUEUE,
    volcano.COMMAND,
    arbitrator.QUEUE_JOB,
    arbitrator.SCHEDULING_SPEC,
    koordinator.POD_GROUP,
    coscheduling.POD_GROUP,
    kubernetes.POD_GROUP,
    kai.POD_GROUP,
)
_GROUPS: Final = frozenset(kind.partition(".")[2] for kind in _CHECKED) - {kubernetes.GROUP}
_PEERS: Final = frozenset({"CronJob", "ElasticQuota", "NumaTopology", "Queue", "BindRequest"})
"""Kinds of these groups that peers serve and we do not."""
_KEYS: Final = sorted(
    {
        *volcano.GROUP_NAME_KEYS,
        *volcano.QUEUE_KEYS,
        volcano.GROUP_MIN_MEMBER,
        *(value for name, value in vars(yunikorn).items() if name.isupper() and isinstance(value, str)),
        kai.QUEUE,
        kai.SUBGROUP,
        volcano.TASK_SPEC,
        volcano.TASK_INDEX,
        volcano.JOB_NAME,
        volcano.JOB_NAMESPACE,
        volcano.JOB_VERSION,
        volcano.JOB_RETRY,
        volcano.WHOLE_JOB,
        *(value for name, value in vars(koordinator).items() if name.isupper() and isinstance(value, str)),
        koordinator.PREFIX + "network-topology-index",
        koordinator.PREFIX + "network-topology-spec",
        *hints.KEYS,
        hints.EXPECTED_START,
        hints.DOMAINS,
        topology.KUEUE_SLICE_SIZE,
        topology.KAI_TREE,
        *(field.path.partition("[")[2].removesuffix("]") for field in FIELDS if field.path.startswith("metadata.")),
    }
    - {""}
)
_OF_OTHER_RELEASES: Final = {"PodSpec": "workloadRef", "batch.JobSpec": "scheduling"}
"""By message: a field that we read, and that the release whose messages we have no longer has, or not yet."""
_OF_KUBERNETES: Final[dict[tuple[type, str], str]] = {(volcano.VolumeSpec, "volumeClaim"): "PersistentVolumeClaimSpec"}
"""Fields of our kinds whose value is one of Kubernetes' messages."""
_DOMAINS: Final = frozenset(key.partition("/")[0] for key in _KEYS if "/" in key)
_NEAR: Final = 0.9


def unknown_fields(obj: Obj) -> Iterator[Fault]:
    """Every field of an object that is not known, and keys and kinds that are nearly those that we know."""
    kind = kind_id(obj)
    if kind in _CHECKED:
        view = KINDS[kind].view
        assert view is not None, f"{kind} is read"
        yield from _unknown(obj, msgspec.inspect.type_info(view), "")
    elif json_fields(message := message_of(obj["apiVersion"], obj["kind"])):
        own = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
        yield from _unknown_of(own, message, "")
    elif kind not in KINDS and kind.partition(".")[2] in _GROUPS and obj["kind"] not in _PEERS:
        known = [one.partition(".")[0] for one in _CHECKED if one.partition(".")[2] == kind.partition(".")[2]]
        text = f"{obj['kind']!r} is not a kind of this group ({', '.join(known)})"
        yield Fault("kind", text + nearest(obj["kind"], known))
    yield from _unknown_keys(obj, "metadata")


def _unknown_of(value: dict[str, Any], message: str, path: str) -> Iterator[Fault]:
    """Of one of Kubernetes' messages. As deep as these are: none contains itself."""
    known = json_fields(message)
    for key, child in value.items():
        field, where = known.get(key), f"{path}.{key}" if path else str(key)
        if field is None and key != _OF_OTHER_RELEASES.get(message):
            yield Fault(where, f"is not known{nearest(str(key), known)}")
        elif field is not None and json_fields(field.type) and not field.is_map:
            parts = enumerate(child) if field.is_list and isinstance(child, list) else [("", child)]
            for index, one in parts:
                if isinstance(one, dict):
                    yield from _unknown_of(one, field.type, f"{where}[{index}]" if field.is_list else where)


def _unknown_by(schema: Schema, value: Any, path: str) -> Iterator[Fault]:
    """Of a value that a schema describes."""
    properties = schema.get("properties")
    if isinstance(value, dict) and properties:
        for key, child in value.items():
            if key in properties:
                yield from _unknown_by(properties[key], child, f"{path}.{key}")
            else:
                yield Fault(f"{path}.{key}", f"is not known{nearest(str(key), properties)}")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _unknown_by(schema.get("items", {}), child, f"{path}[{index}]")


def _unknown_keys(obj: Any, path: str) -> Iterator[Fault]:
    """Annotations and labels that are nearly a key that we read."""
    for field, keys in (("annotations", annotations_of(obj)), ("labels", labels_of(obj))):
        for key in keys if isinstance(keys, dict) else ():
            if not isinstance(key, str) or key in _KEYS or key.partition("/")[0] not in _DOMAINS:
                continue
            close = difflib.get_close_matches(key, _KEYS, n=1, cutoff=_NEAR)
            if close:
                yield Fault(f"{path}.{field}[{key}]", f"is not known; did you mean {close[0]}?")


def _unknown(value: Any, kind: msgspec.inspect.Type, path: str) -> Iterator[Fault]:
    match kind:
        case msgspec.inspect.StructType(cls=cls) if cls is PodTemplate and isinstance(value, dict):
            yield from _unknown_of(value, "PodTemplateSpec", path)
        case msgspec.inspect.StructType(cls=cls) if isinstance(value, dict):
            known = {field.encode_name: field.type for field in kind.fields}
            peers = UNREAD.get(cls, {})
            for key, child in value.items():
                where = f"{path}.{key}" if path else str(key)
                message = "ObjectMeta" if where == "metadata" else _OF_KUBERNETES.get((cls, key), "")
                if message and isinstance(child, dict):
                    yield from _unknown_of(child, message, where)
                elif key in peers:
                    yield from _unknown_by(peers[key], child, where)
                elif key in known and where != "status":
                    yield from _unknown(child, known[key], where)
                elif key not in known and where not in ("apiVersion", "kind", "metadata", "status"):
                    yield Fault(where, f"is not known{nearest(str(key), known.keys() | peers.keys())}")
        case msgspec.inspect.ListType(item_type=item) if isinstance(value, list):
            for index, child in enumerate(value):
                yield from _unknown(child, item, f"{path}[{index}]")
        case msgspec.inspect.UnionType(types=types):
            for one in types:
                if isinstance(one, msgspec.inspect.StructType | msgspec.inspect.ListType):
                    yield from _unknown(value, one, path)
