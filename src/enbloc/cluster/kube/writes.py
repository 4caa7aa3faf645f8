"""The HTTP requests of each write, and how to find out whether a write whose answer was lost was executed.

Every write may be sent more than once (`http`). So each can be recognized as our own: a Binding by its node and its
annotations, a creation by its owner and content, a patch by its content; deleting twice is the same as deleting once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, Ref, annotations_of, controller_of, is_terminating, uid_of
from enbloc.api.writes import BindPod, Create, Delete, EmitEvent, EvictPod, Patch, Refused, Write, merge_patch
from enbloc.cluster.kube.discovery import POD, Discovery, Resource
from enbloc.cluster.kube.events import Events
from enbloc.cluster.kube.http import MERGE_PATCH, STRATEGIC_PATCH, Answer, Api, backoff_s, is_unserved, refusal
from enbloc.cluster.kube.objects import read_object
from enbloc.units import format_timestamp

MAX_CONFLICTS = 4
"""Attempts of a patch without a version that conflicts with other writers."""
_encode = msgspec.json.Encoder().encode


class Writer:
    """Executes writes on one cluster."""

    def __init__(
        self,
        api: Api,
        discovery: Discovery,
        reported: Callable[[Ref], Obj | None],
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        """`reported` returns an object as the watch last reported it, if it did."""
        self._api = api
        self._discovery = discovery
        self._reported = reported
        self._now = now
        self._events = Events(api, now)

    async def execute(self, write: Write) -> Obj | None:
        """One write; the object as the API returned it, if it did. Raises `Refused`."""
        match write:
            case BindPod():
                await self._bind(write)
                return None
            case Patch():
                return await self._patch(write)
            case EmitEvent():
                return await self._events.emit(write)
            case Create():
                return await self._create(write.obj)
            case Delete():
                return await self._delete(write)
            case EvictPod():
                return await self._evict(write)

    # -- the one that has to be fast

    async def _bind(self, write: BindPod) -> None:
        """A Binding with the pod's UID: the API server refuses a recreated pod, and copies the annotations to the
        pod."""
        metadata: dict[str, Any] = {"name": write.name, "namespace": write.namespace, "uid": write.uid}
        if write.annotations:
            metadata["annotations"] = write.annotations
        target = {"apiVersion": "v1", "kind": "Node", "name": write.node}
        body = _encode({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target})
        answer = await self._api.write("POST", f"/api/v1/namespaces/{write.namespace}/pods/{write.name}/binding", body)
        if answer.status >= 300 and not (answer.status == 409 and await self._is_bound(write, answer.unsure)):
            raise refusal(answer)

    async def _is_bound(self, write: BindPod, unsure: bool) -> bool:
        """Whether the pod is bound as requested because of us: our annotations are on it, or, without annotations, an
        answer was lost."""
        pod = await read(self._api, POD, write.namespace, write.name)
        if pod is None or (write.uid and uid_of(pod) != write.uid) or pod["spec"].get("nodeName") != write.node:
            return False
        carried = annotations_of(pod).items() >= write.annotations.items()
        return carried and (unsure or bool(write.annotations))

    # -- the others

    async def _create(self, obj: Obj) -> Obj:
        metadata = {key: value for key, value in obj["metadata"].items() if key not in ("resourceVersion", "uid")}
        namespace = metadata.get("namespace") or "default"
        name = metadata.get("name") or ""

        async def send(served: Resource) -> Answer:
            if served.namespaced:
                metadata["namespace"] = namespace
            path = msgspec.structs.replace(served, api_version=obj["apiVersion"]).collection(namespace)
            return await self._api.write("POST", path, _encode({**obj, "metadata": metadata}), at_most_once=not name)

        resource, answer = await self._send(kind_id(obj), send)
        if answer.is_good:
            return read_object(answer.body)
        refused = refusal(answer)
        if refused.reason != "AlreadyExists" or not name:
            raise refused
        try:
            refused.existing = await read(self._api, resource, namespace, name)
        except Refused as why:
            if why.code != 403:
                raise
            # The role allows creating Secrets, not reading them: whose it is stays unknown.
        if answer.unsure and refused.existing is not None and is_same_creation(refused.existing, obj):
            return refused.existing
        raise refused

    async def _patch(self, write: Patch) -> Obj:
        """A merge patch with UID and version in its body: the API server refuses to change either.

        In one case it ignores the UID: the status of a custom resource. Such a patch carries the version that was last
        reported, and if that is outdated, the present one."""
        ref, to_status = write.ref, write.subresource == "status"
        version = write.resource_version
        follows = bool(write.uid) and to_status and not version and ref.kind != POD.kind
        if follows:
            reported = self._reported(ref)
            if reported is None or uid_of(reported) != write.uid:
                reported = await self._same(ref, write.uid)
            version = reported["metadata"]["resourceVersion"]
        unsure = False
        for attempt in range(MAX_CONFLICTS):
            body = _encode(_pinned(write.patch, write.uid, version))

            async def send(served: Resource, body: bytes = body) -> Answer:
                path = served.object(ref.namespace, ref.name)
                if to_status and served.has_status:
                    path += "/status"
                return await self._api.write("PATCH", path, body, MERGE_PATCH)

            _, answer = await self._send(ref.kind, send)
            if answer.is_good:
                return read_object(answer.body)
            unsure = unsure or answer.unsure
            if answer.status not in (409, 422):
                break
            now = await self._same(ref, write.uid)
            if unsure and merge_patch(now, write.patch) == now:
                return now
            if answer.status == 422 or write.resource_version:
                break
            if follows:
                version = now["metadata"]["resourceVersion"]
            await asyncio.sleep(backoff_s(self._api.bounds, attempt, self._api.bounds.max_backoff_s))
        raise refusal(answer)

    async def _same(self, ref: Ref, uid: str) -> Obj:
        """The object as it is now. Raises `Refused` if it is gone or has another UID."""
        resource = await self._served(ref.kind)
        now = await read(self._api, resource, ref.namespace, ref.name)
        if now is None:
            raise Refused(404, "NotFound", f'{resource.plural} "{ref.name}" not found')
        if uid and uid_of(now) != uid:
            message = f'{resource.plural} "{ref.name}" is another one: its UID is {uid_of(now)}, not {uid}'
            raise Refused(409, "Conflict", message)
        return now

    async def _delete(self, write: Delete) -> Obj | None:
        """Deletes in the background: dependents are garbage collected."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if write.uid:
            options["preconditions"] = {"uid": write.uid}
        if write.grace_s is not None:
            options["gracePeriodSeconds"] = max(write.grace_s, 0)
        body = _encode(options)

        async def send(served: Resource) -> Answer:
            return await self._api.write("DELETE", served.object(write.ref.namespace, write.ref.name), body)

        _, answer = await self._send(write.ref.kind, send)
        if answer.is_good:
            obj = read_object(answer.body)
            return None if obj.get("kind") == "Status" else obj
        if answer.unsure and (answer.status == 404 or (answer.status == 409 and write.uid)):
            return None  # gone, or recreated
        raise refusal(answer)

    async def _evict(self, write: EvictPod) -> Obj | None:
        """Sets the condition and deletes; `runtime.write_plans` says why."""
        ref = Ref("Pod", write.namespace, write.name)
        pod = await self._same(ref, write.uid)
        if not is_terminating(pod):
            target = {
                "type": "DisruptionTarget",
                "status": "True",
                "lastTransitionTime": format_timestamp(self._now()),
                "reason": write.reason,
                "message": write.message,
            }
            # A strategic merge patch adds it to the other conditions, whatever they are by then.
            patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [target]}}
            path = POD.object(write.namespace, write.name) + "/status"
            answer = await self._api.write("PATCH", path, _encode(patch), STRATEGIC_PATCH)
            if not answer.is_good:
                raise refusal(answer)
        return await self._delete(Delete(ref, uid_of(pod)))

    async def _send(self, kind: str, send: Callable[[Resource], Awaitable[Answer]]) -> tuple[Resource, Answer]:
        """Sends to where the kind is served; if it is no longer served there, to where it is now."""
        resource = await self._served(kind)
        answer = await send(resource)
        if answer.status == 404 and is_unserved(answer):
            await self._discovery.look_up([kind])
            now = await self._served(kind)
            if now != resource:
                return now, await send(now)
        return resource, answer

    async def _served(self, kind: str) -> Resource:
        found = await self._discovery.find(kind)
        if found is None:
            raise Refused(404, "NotFound", f"the cluster does not serve {kind}")
        return found


async def read(api: Api, resource: Resource, namespace: str, name: str) -> Obj | None:
    """One object as it is now, if it exists."""
    answer = await api.read(resource.object(namespace, name))
    if answer.status == 404:
        return None
    if not answer.is_good:
        raise refusal(answer)
    return read_object(answer.body)


def is_same_creation(existing: Obj, wanted: Obj) -> bool:
    """Whether the existing object is the one to be created: it has the same owner, or, without owners, all the content
    (besides what the API server and webhooks added)."""
    owner, wanted_owner = controller_of(existing), controller_of(wanted)
    if is_terminating(existing):
        return False
    if wanted_owner is not None:
        return owner is not None and owner.get("uid") == wanted_owner.get("uid")
    content = {key: value for key, value in wanted.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    return owner is None and _holds(existing, content)


def _holds(has: Any, wanted: Any) -> bool:
    """Whether `has` contains `wanted`. To an API server, empty and absent are the same."""
    if not wanted:
        return not has
    if isinstance(wanted, dict):
        return isinstance(has, dict) and all(_holds(has.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(has, list) and len(has) == len(wanted) and all(map(_holds, has, wanted))
    return bool(has == wanted)


def _pinned(patch: dict[str, Any], uid: str, version: str) -> dict[str, Any]:
    pins = {}
    if uid:
        pins["uid"] = uid
    if version:
        pins["resourceVersion"] = version
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **pins}} if pins else patch
