"""Fields of peers' releases that this version does not read: Volcano 1.14, and Kubernetes 1.37 for its own PodGroup.

They are known, so that nothing warns of them (N2), and in the schemas, so that operators that look for them in a
definition find them. What each does here is the table in `gangs.compatibility`.
"""

from __future__ import annotations

from typing import Any, Final

from enbloc.api import kubernetes, volcano

Schema = dict[str, Any]

_INTEGER: Final[Schema] = {"type": "integer", "format": "int32"}
_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}
_ANY: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}
_AMOUNTS: Final[Schema] = {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties} | _ANY


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


_TOPOLOGY: Final = _object(mode=_TEXT | {"enum": ["hard", "soft"]}, highestTierAllowed=_INTEGER, highestTierName=_TEXT)
_SELECTOR: Final = _object(
    matchLabels={"type": "object", "additionalProperties": _TEXT},
    matchExpressions=_list(_object(key=_TEXT, operator=_TEXT, values=_TEXTS)),
)
_SUBGROUPS: Final = _list(
    _object(
        name=_TEXT,
        labelSelector=_SELECTOR,
        matchLabelKeys=_TEXTS,
        minSubGroups=_INTEGER,
        subGroupSize=_INTEGER,
        networkTopology=_TOPOLOGY,
    )
)
_PARTITIONS: Final = _object(
    totalPartitions=_INTEGER, partitionSize=_INTEGER, minPartitions=_INTEGER, networkTopology=_TOPOLOGY
)
_TERMS: Final = _object(
    requiredDuringSchedulingIgnoredDuringExecution=_TEXTS, preferredDuringSchedulingIgnoredDuringExecution=_TEXTS
)

UNREAD: Final[dict[type, dict[str, Schema]]] = {
    volcano.JobSpec: {"networkTopology": _TOPOLOGY},
    volcano.TaskSpec: {"partitionPolicy": _PARTITIONS},
    volcano.VolumeSpec: {"name": _TEXT},
    volcano.JobStatus: {
        "taskStatusCount": {
            "type": "object",
            "additionalProperties": _object(phase={"type": "object", "additionalProperties": _INTEGER}),
        },
        "runningDuration": _TEXT,
    },
    volcano.PodGroupSpec: {"networkTopology": _TOPOLOGY, "subGroupPolicy": _SUBGROUPS},
    volcano.QueueSpec: {
        "affinity": _object(nodeGroupAffinity=_TERMS, nodeGroupAntiAffinity=_TERMS),
        "extendClusters": _list(_object(name=_TEXT, weight=_INTEGER, capacity=_AMOUNTS)),
    },
    volcano.QueueStatus: {
        **dict.fromkeys(("unknown", "pending", "running", "inqueue", "completed"), _INTEGER),
        "reservation": _object(nodes=_TEXTS, resource=_AMOUNTS),
        "allocated": _AMOUNTS,
    },
    kubernetes.PodGroupSpec: {
        "schedulingConstraints": _object(topology=_list(_object(key=_TEXT))),
        **dict.fromkeys(("resourceClaims", "parentCompositePodGroupName", "podGroupTemplateRef", "priority"), _ANY),
    },
}
"""By the view of an object: the field and its schema."""
