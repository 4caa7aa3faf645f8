"""Requests that no sane client sends: every endpoint, verb, query and body, made from a seed."""

from __future__ import annotations

import copy
import json
import random
from typing import Any, NamedTuple
from urllib.parse import quote

from cluster.embedded.http.serving import config_map, pod
from enbloc.api.kinds import KINDS

VERBS = (
    "GET",
    "GET",
    "POST",
    "POST",
    "POST",
    "PUT",
    "PATCH",
    "PATCH",
    "PATCH",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "PROPFIND",
)
NAMES = ("a", "b", "c", "p", "UPPER", "x" * 260, "a b", "ü", "..", "a%00b", "")
NAMESPACES = ("default", "default", "default", "team", "nowhere", "Bad_One", "")
SUBRESOURCES = ("", "", "", "", "status", "scale", "binding", "eviction", "log", "exec", "finalize", "nonsense")
QUERIES = {
    "labelSelector": ("a=b", "a in (b,c)", "!a", "a,,b", "a=(", "=", "a in b", "é=1", "a>1", "a" * 500, "a notin ()"),
    "fieldSelector": ("metadata.name=a", "spec.nodeName=", "status.phase!=Running", "a.b.c=d", "=", "\\", "a=b\\,c"),
    "limit": ("1", "0", "-1", "x", "9" * 40, ""),
    "continue": ("x", "eyJ9", "e30", "eyJzbmFwc2hvdCI6MSwibmFtZXNwYWNlIjoiIiwibmFtZSI6IiJ9", "%"),
    "resourceVersion": ("0", "1", "5", "999999999", "x", "-1"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x"),
    "timeoutSeconds": ("1", "x"),
    "dryRun": ("All", "x", ""),
    "fieldManager": ("me", "", "x" * 200, "\n"),
    "fieldValidation": ("Strict", "Warn", "x"),
    "force": ("true", "false", "x"),
    "propagationPolicy": ("Foreground", "Background", "Orphan", "x"),
    "gracePeriodSeconds": ("0", "5", "-1", "x", "99999999999999999999"),
    "orphanDependents": ("true", "x"),
    "includeObject": ("None", "Object", "x"),
    "container": ("main", "x"),
    "follow": ("false", "x"),
    "tailLines": ("1", "x"),
    "sinceTime": ("2026-01-01T00:00:00Z", "x"),
    "sendInitialEvents": ("true", "x"),
    "allowWatchBookmarks": ("true", "x"),
    "\x00": ("\x00",),
}
MEDIA = (
    "application/json",
    "application/json",
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
    "x" * 300,
)
ACCEPTS = (
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    ";;;,",
    "*/*",
    "",
)
LEAVES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**70,
    "",
    "x",
    "\u0000",
    "1Gi",
    "-5",
    "é" * 100,
    [],
    {},
    [None],
    [{}],
    {"": None},
    {"a": {"b": []}},
    [[1]],
    "2026-01-01T00:00:00Z",
    1e300,
)
KEYS = ("metadata", "spec", "status", "name", "labels", "containers", "tasks", "replicas", "$patch", "finalizers", "")
JOB: dict[str, Any] = {
    "metadata": {"name": "a"},
    "spec": {"minAvailable": 1, "queue": "default", "tasks": [{"name": "w", "replicas": 2, "template": pod()}]},
}
NODE: dict[str, Any] = {"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "8", "pods": "10"}}}


GROUP: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"minMember": 1, "queue": "default"}}
QUEUE_JOB: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"taskSpecs": [{"replicas": 2, "template": pod()}]}}
_IN_DEFAULT = "/namespaces/default"
PLAUSIBLE: dict[str, dict[str, Any]] = {
    f"/api/v1{_IN_DEFAULT}/pods": pod("a", schedulerName="enbloc"),
    f"/api/v1{_IN_DEFAULT}/configmaps": config_map("a"),
    f"/api/v1{_IN_DEFAULT}/resourcequotas": {"metadata": {"name": "a"}, "spec": {"hard": {"pods": "50"}}},
    "/api/v1/nodes": NODE,
    f"/apis/batch.volcano.sh/v1alpha1{_IN_DEFAULT}/jobs": JOB,
    f"/apis/scheduling.volcano.sh/v1beta1{_IN_DEFAULT}/podgroups": GROUP,
    "/apis/scheduling.volcano.sh/v1beta1/queues": {"metadata": {"name": "a"}, "spec": {"weight": 2}},
    f"/apis/scheduling.x-k8s.io/v1alpha1{_IN_DEFAULT}/podgroups": GROUP,
    f"/apis/arbitrator.incubator.k8s.io/v1alpha1{_IN_DEFAULT}/queuejobs": QUEUE_JOB,
    f"/apis/policy/v1{_IN_DEFAULT}/poddisruptionbudgets": {"metadata": {"name": "a"}, "spec": {"minAvailable": "50%"}},
    "/apis/scheduling.k8s.io/v1/priorityclasses": {"metadata": {"name": "a"}, "value": 7},
}


class Request(NamedTuple):
    method: str
    path: str
    body: bytes | None
    headers: dict[str, str]


class Fuzzer:
    """Requests without end, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._kinds = list(KINDS.values())

    def request(self) -> Request:
        pick = self._random
        if pick.random() < 0.7:
            return self._plausible()
        method = pick.choice(VERBS)
        media = pick.choice(MEDIA)
        path = self._path() + self._query()
        body = None if method in ("GET", "HEAD") and pick.random() < 0.9 else self._body(media)
        headers = {"Accept": pick.choice(ACCEPTS)}
        if body is not None:
            headers["Content-Type"] = media
        return Request(method, path, body, headers)

    def _plausible(self) -> Request:
        """One that may well be taken: the right body at the right place, with something odd in it now and then."""
        pick = self._random
        collection, template = pick.choice(list(PLAUSIBLE.items()))
        value: Any = copy.deepcopy(template)
        name = value["metadata"]["name"] = pick.choice("abc")
        query = self._query() if pick.random() < 0.2 else ""
        headers = {"Accept": pick.choice(ACCEPTS[:3]), "Content-Type": "application/json"}
        method = pick.choice(("POST", "POST", "POST", "PUT", "PATCH", "PATCH", "GET", "DELETE"))
        if pick.random() < 0.5:
            self._spoil(value)
        path = collection if method == "POST" or pick.random() < 0.03 else f"{collection}/{name}"
        if method == "PATCH":
            headers["Content-Type"] = media = pick.choice(MEDIA[4:8])
            query = f"?fieldManager={pick.choice('xy')}&force={pick.choice(('true', 'false'))}"
            path += "/status" if pick.random() < 0.3 else ""
            if media == "application/json-patch+json":
                operation = {"op": "add", "path": f"/metadata/{pick.choice(KEYS)}", "value": pick.choice(LEAVES)}
                return Request(method, path + query, json.dumps([operation]).encode(), headers)
            value = {key: value[key] for key in pick.sample(list(value), pick.randint(1, len(value)))}
            if media == "application/apply-patch+yaml":
                value = {**value, "metadata": value.get("metadata") or {}}
        if "Pod" in template.get("kind", "") and pick.random() < 0.2:
            target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": pick.choice("abc")}}
            return Request("POST", f"{collection}/{name}/binding", json.dumps(target).encode(), headers)
        for key in ("kind", "apiVersion"):
            value.pop(key, None)
        return Request(method, path + query, None if method == "GET" else json.dumps(value).encode(), headers)

    def _path(self) -> str:
        pick = self._random
        if pick.random() < 0.1:
            segments = [pick.choice(("api", "apis", "v1", "pods", "openapi", "v3", "namespaces", "", "%2f", "x", "é"))]
            more = ("v1", "apps", "pods", "default", "", "batch.volcano.sh")
            segments += [pick.choice(more) for _ in range(pick.randrange(6))]
            return "/" + "/".join(quote(one, safe="%") for one in segments)
        kind = pick.choice(self._kinds)
        version = pick.choice((*kind.versions, *kind.versions, "v9"))
        path = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
        if kind.namespaced and pick.random() < 0.9:
            path += f"/namespaces/{quote(pick.choice(NAMESPACES))}"
        path += f"/{kind.plural}"
        if pick.random() < 0.65:
            path += f"/{quote(pick.choice(NAMES))}"
            subresource = pick.choice(SUBRESOURCES)
            path += f"/{subresource}" if subresource else ""
        return path

    def _query(self) -> str:
        pick = self._random
        chosen = [pick.choice(list(QUERIES)) for _ in range(pick.choice((0, 0, 0, 1, 1, 2, 3)))]
        texts = [f"{quote(key)}={quote(pick.choice(QUERIES[key]))}" for key in chosen]
        return "?" + "&".join(texts) if texts else ""

    def _body(self, media: str) -> bytes:
        pick = self._random
        roll = pick.random()
        if roll < 0.05:
            return pick.randbytes(pick.randrange(200))
        if roll < 0.08:
            return b"[" * pick.choice((10, 200, 5000))
        if roll < 0.1:
            return b"k8s\x00" + pick.randbytes(pick.randrange(80))
        if media == "application/json-patch+json" and roll < 0.8:
            return json.dumps([self._operation() for _ in range(pick.randrange(4))]).encode()
        if roll < 0.15:
            return json.dumps(pick.choice(LEAVES)).encode()
        value: Any = copy.deepcopy(pick.choice((pod(), pod("a"), config_map("a"), JOB, NODE)))
        value.pop("kind", None)
        value.pop("apiVersion", None)
        value["metadata"]["name"] = pick.choice(NAMES[:4])
        for _ in range(pick.choice((0, 0, 1, 1, 2, 4))):
            self._spoil(value)
        return json.dumps(value).encode()

    def _operation(self) -> dict[str, Any]:
        pick = self._random
        path = "/" + "/".join(pick.choice((*KEYS, "0", "-", "5", "~1", "~")) for _ in range(pick.randrange(4)))
        made = {
            "op": pick.choice(("add", "remove", "replace", "move", "copy", "test", "x", None)),
            "path": pick.choice((path, path, path, "", None, "x")),
            "from": path,
            "value": pick.choice(LEAVES),
        }
        for key in ("value", "from", "path"):
            if pick.random() < 0.1:
                del made[key]
        return made

    def _spoil(self, value: Any) -> None:
        """Puts something that does not belong there somewhere into it."""
        pick = self._random
        while True:
            if isinstance(value, dict):
                key: Any = pick.choice((*value, pick.choice(KEYS))) if pick.random() < 0.9 else "x"
                if isinstance(value.get(key), dict | list) and value[key] and pick.random() < 0.8:
                    value = value[key]
                    continue
            else:
                key = pick.randrange(len(value))
                if isinstance(value[key], dict | list) and value[key] and pick.random() < 0.8:
                    value = value[key]
                    continue
            value[key] = copy.deepcopy(pick.choice(LEAVES))
            return
