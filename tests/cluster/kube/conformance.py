"""What the adapter asks of any API server, as stories that are told to two of them: the façade of `enbloc up`
(`test_on_facade.py`) and the real one (`tests/e2e/test_adapter.py`).

A story leaves what it made behind, under names of its own. Nobody schedules here, and no node is needed.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from cluster.kube.server import SeenEvents, until
from enbloc.api.meta import Obj, Ref, condition_of, uid_of
from enbloc.api.writes import BindPod, Create, Delete, EmitEvent, EvictPod, Patch, Refused, WatchEvent, Write
from enbloc.cluster.kube import KubeCluster
from enbloc.cluster.kube.cluster import connect
from enbloc.cluster.kube.http import Bounds
from enbloc.cluster.kube.informer import Informer
from enbloc.runtime.election import Elector

BOUNDS = Bounds(page=3, watch_s=1.0, max_reconnect_s=0.1)
"""Small pages, and watches that the server ends every second or so."""
DECISION = {"enbloc.dev/decision": "d-1"}
GROUP = "PodGroup.scheduling.volcano.sh"
MAP = "ConfigMap"
NOBODY = "00000000-dead-4000-8000-000000000000"
Diagnosis = Callable[["Stage"], Coroutine[Any, Any, None]]
STORIES: list[Diagnosis] = []


class Stage:
    """A cluster, and a prefix for the names of one story."""

    def __init__(self, cluster: KubeCluster) -> None:
        self.cluster = cluster
        self.prefix = secrets.token_hex(3)

    def name(self, short: str) -> str:
        return f"t{self.prefix}-{short}"

    def ref(self, kind: str, short: str) -> Ref:
        return Ref(kind, "default", self.name(short))

    async def do(self, write: Write) -> Obj:
        done = await self.cluster.execute(write)
        assert done is not None
        return done

    async def refused(self, write: Write) -> tuple[int, str]:
        with pytest.raises(Refused) as caught:
            await self.cluster.execute(write)
        return caught.value.code, caught.value.reason

    async def pod(self, short: str, **metadata: Any) -> Obj:
        named = {"name": self.name(short), "namespace": "default", **metadata}
        spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
        return await self.do(Create({"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec}))

    async def map(self, short: str, **data: str) -> Obj:
        named = {"name": self.name(short), "namespace": "default"}
        return await self.do(Create({"apiVersion": "v1", "kind": MAP, "metadata": named, "data": data}))

    async def group(self, short: str) -> Obj:
        named = {"name": self.name(short), "namespace": "default"}
        api_version = "scheduling.volcano.sh/v1beta1"
        return await self.do(
            Create({"apiVersion": api_version, "kind": "PodGroup", "metadata": named, "spec": {"minMember": 2}})
        )

    def of_this(self, seen: list[tuple[str, str, str]]) -> list[tuple[str, str]]:
        return [(what, name.removeprefix(f"t{self.prefix}-")) for what, name, _ in seen if self.prefix in name]


def story(reported: Diagnosis) -> Diagnosis:
    STORIES.append(reported)
    return reported


def tell(told: Diagnosis, kubeconfig: Path) -> None:
    async def whole() -> None:
        async with asyncio.timeout(60), await connect(str(kubeconfig), None, bounds=BOUNDS) as cluster:
            await told(Stage(cluster))
        await asyncio.sleep(0.1)  # TLS has a few words left to say

    asyncio.run(whole())


# -- reading


@story
async def lists_come_in_pages_and_whole(stage: Stage) -> None:
    for number in range(8):
        await stage.map(f"m{number}", n=str(number))
    found = [one for one in await stage.cluster.list(MAP, "default") if stage.prefix in one["metadata"]["name"]]
    assert [one["data"]["n"] for one in found] == [str(number) for number in range(8)]
    assert {(one["apiVersion"], one["kind"]) for one in found} == {("v1", MAP)}
    assert await stage.cluster.get(MAP, "default", stage.name("m3")) == found[3]
    assert await stage.cluster.get(MAP, "default", stage.name("none")) is None
    assert await stage.cluster.list("Thing.no.such.group") == []
    assert not stage.cluster.serves("Thing.no.such.group")


@story
async def watches_tell_in_order(stage: Stage) -> None:
    before = await stage.map("before")
    seen = SeenEvents()
    await stage.cluster.start({MAP, "Thing.no.such.group"}, seen)
    assert stage.of_this(seen) == [("ADDED", "before")]
    ref = stage.ref(MAP, "a")
    first = await stage.map("a")
    await stage.do(Patch(ref, {"data": {"x": "1"}}))
    await stage.cluster.execute(Delete(ref, uid_of(first)))
    second = await stage.map("a")
    await stage.cluster.execute(Delete(stage.ref(MAP, "before"), uid_of(before)))
    await until(lambda: len(stage.of_this(seen)) == 6)
    whats = ["ADDED", "MODIFIED", "DELETED", "ADDED"]
    assert stage.of_this(seen)[1:] == [*((what, "a") for what in whats), ("DELETED", "before")]
    uids = [uid for _, name, uid in seen if name == stage.name("a")]
    assert uids == [uid_of(first)] * 3 + [uid_of(second)]
    assert stage.cluster.healthy()


@story
async def watches_go_on_where_they_ended(stage: Stage) -> None:
    """The server ends each after about a second; nothing is told twice and nothing is left out."""
    seen = SeenEvents()
    await stage.cluster.start({MAP}, seen)
    for number in range(24):
        await stage.map(f"m{number}")
        await asyncio.sleep(0.15)
    await until(lambda: len(stage.of_this(seen)) >= 24)
    await asyncio.sleep(1.5)
    assert stage.of_this(seen) == [("ADDED", f"m{number}") for number in range(24)]


@story
async def what_is_too_long_ago_is_listed_anew(stage: Stage) -> None:
    known, unknown = await stage.map("known"), await stage.map("unknown")
    gone = {**known, "metadata": {**known["metadata"], "name": stage.name("gone"), "uid": NOBODY}}
    reported: list[tuple[str, str]] = []

    def observe(event: WatchEvent) -> None:
        if stage.prefix in event.obj["metadata"]["name"]:
            reported.append((event.type, uid_of(event.obj)))

    await stage.cluster.list(MAP)
    resource = stage.cluster._discovery.known(MAP)
    assert resource is not None

    async def find() -> Any:
        return resource

    assert await _says_410(stage, f"{resource.collection()}?watch=true&resourceVersion=1")
    informer = Informer(stage.cluster._api, resource, observe, find)
    informer.take([known, gone], "1")
    del reported[:]
    following = asyncio.create_task(informer.follow())
    await until(lambda: len(reported) >= 2)
    await stage.do(Patch(stage.ref(MAP, "known"), {"data": {"x": "1"}}))
    await until(lambda: len(reported) >= 3)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert reported == [("DELETED", NOBODY), ("ADDED", uid_of(unknown)), ("MODIFIED", uid_of(known))]


async def _says_410(stage: Stage, path: str) -> bool:
    """Some servers say it before the stream begins, others in its first line."""
    try:
        async with stage.cluster._api.stream(path) as response:
            line = await response.content.readline()
    except Refused as why:
        return why.code == 410
    return b'"ERROR"' in line and b"410" in line


# -- writing


@story
async def what_exists_is_not_made_again(stage: Stage) -> None:
    made = await stage.map("a", x="1")
    with pytest.raises(Refused) as caught:
        await stage.map("a", x="2")
    assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")
    assert caught.value.existing == made
    named: Obj = {
        "apiVersion": "v1",
        "kind": MAP,
        "metadata": {"generateName": f"t{stage.prefix}-", "namespace": "default"},
    }
    names = {(await stage.do(Create(named)))["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert (await stage.refused(Create({**named, "metadata": {"name": "Not A Name", "namespace": "default"}})))[
        0
    ] == 422
    nowhere = {**named, "metadata": {"name": "x", "namespace": f"t{stage.prefix}-nowhere"}}
    assert await stage.refused(Create(nowhere)) == (404, "NotFound")


@story
async def bindings_name_the_uid_and_carry_annotations(stage: Stage) -> None:
    made = await stage.pod("a", annotations={"mine": "kept"})
    name, uid = stage.name("a"), uid_of(made)
    assert await stage.refused(BindPod("default", name, NOBODY, "n1", DECISION)) == (409, "Conflict")
    assert await stage.cluster.execute(BindPod("default", name, uid, "n1", DECISION)) is None
    bound = await stage.cluster.get("Pod", "default", name)
    assert bound is not None
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["annotations"] == {"mine": "kept", **DECISION}
    scheduled = condition_of(bound, "PodScheduled")
    assert scheduled is not None
    assert scheduled["status"] == "True"
    await stage.cluster.execute(BindPod("default", name, uid, "n1", DECISION))  # by the same decision: it is done
    assert (await stage.refused(BindPod("default", name, uid, "n1", {"enbloc.dev/decision": "d-2"})))[0] == 409
    assert (await stage.refused(BindPod("default", name, uid, "n2", DECISION)))[0] == 409
    assert (await stage.refused(BindPod("default", stage.name("none"), uid, "n1")))[0] == 404


@story
async def patches_hold_to_uid_and_version(stage: Stage) -> None:
    for made, kind in ((await stage.map("a"), MAP), (await stage.group("a"), GROUP), (await stage.pod("a"), "Pod")):
        ref, uid, version = stage.ref(kind, "a"), uid_of(made), made["metadata"]["resourceVersion"]
        marked: dict[str, Any] = {"metadata": {"annotations": {"x": "y", "z": "1"}}}
        changed = await stage.do(Patch(ref, marked, uid=uid, resource_version=version))
        assert changed["metadata"]["annotations"] == {"x": "y", "z": "1"}
        assert changed["metadata"]["resourceVersion"] != version
        assert await stage.refused(Patch(ref, marked, uid=NOBODY)) == (409, "Conflict")
        assert await stage.refused(Patch(ref, marked, uid=uid, resource_version=version)) == (409, "Conflict")
        assert await stage.refused(Patch(stage.ref(kind, "none"), marked)) == (404, "NotFound")
        less = await stage.do(Patch(ref, {"metadata": {"annotations": {"z": None}}}, uid=uid))
        assert less["metadata"]["annotations"] == {"x": "y"}
        same = await stage.do(Patch(ref, {"metadata": {"annotations": {"x": "y"}}}, uid=uid))
        assert same["metadata"]["resourceVersion"] == less["metadata"]["resourceVersion"]


@story
async def the_status_is_apart(stage: Stage) -> None:
    group, pod = await stage.group("a"), await stage.pod("a")
    condition = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "QueueFull",
        "message": "no",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
        "transitionID": "1",
    }
    patch = {"status": {"phase": "Pending", "conditions": [condition]}, "spec": {"minMember": 7}}
    reported = await stage.do(Patch(stage.ref(GROUP, "a"), patch, "status", uid_of(group)))
    assert (reported["status"]["phase"], reported["spec"]["minMember"]) == ("Pending", 2)
    assert reported["status"]["conditions"][0]["message"] == "no"
    kept = await stage.do(
        Patch(stage.ref(GROUP, "a"), {"status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}})
    )
    assert (kept["status"]["phase"], kept["metadata"]["labels"]) == ("Pending", {"a": "b"})
    assert await stage.refused(Patch(stage.ref(GROUP, "a"), patch, "status", NOBODY)) == (409, "Conflict")
    old = Patch(stage.ref(GROUP, "a"), patch, "status", uid_of(group), group["metadata"]["resourceVersion"])
    assert await stage.refused(old) == (409, "Conflict")
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    reported = await stage.do(Patch(stage.ref("Pod", "a"), {"status": {"conditions": [waits]}}, "status", uid_of(pod)))
    found = condition_of(reported, "PodScheduled")
    assert found is not None
    assert found["message"] == "no room"
    assert await stage.refused(Patch(stage.ref("Pod", "a"), {"status": {"phase": "Failed"}}, "status", NOBODY)) == (
        409,
        "Conflict",
    )


@story
async def deletions_hold_to_the_uid(stage: Stage) -> None:
    for made, kind in ((await stage.map("a"), MAP), (await stage.pod("a"), "Pod")):
        ref = stage.ref(kind, "a")
        assert await stage.refused(Delete(ref, NOBODY)) == (409, "Conflict")
        await stage.cluster.execute(Delete(ref, uid_of(made), 0))
        assert await stage.cluster.get(*ref) is None
        assert await stage.refused(Delete(ref, uid_of(made))) == (404, "NotFound")


@story
async def dependants_go_with_their_owner(stage: Stage) -> None:
    owner = await stage.map("owner")
    owned = {"apiVersion": "v1", "kind": MAP, "name": stage.name("owner"), "uid": uid_of(owner)}
    await stage.pod("owned", ownerReferences=[owned])
    await stage.cluster.execute(Delete(stage.ref(MAP, "owner"), uid_of(owner)))
    async with asyncio.timeout(30):
        while await stage.cluster.get("Pod", "default", stage.name("owned")) is not None:
            await asyncio.sleep(0.1)


@story
async def evictions_are_marked_deletions(stage: Stage) -> None:
    made = await stage.pod("a", finalizers=["example.com/keep"])
    name, uid = stage.name("a"), uid_of(made)
    assert (await stage.refused(EvictPod("default", name, NOBODY, "Preempted", "for x")))[0] == 409
    await stage.cluster.execute(EvictPod("default", name, uid, "Preempted", "for x"))
    leaving = await stage.cluster.get("Pod", "default", name)
    assert leaving is not None
    assert leaving["metadata"]["deletionTimestamp"]
    target = condition_of(leaving, "DisruptionTarget")
    assert target is not None
    assert (target["status"], target["reason"], target["message"]) == (
        "True",
        "Preempted",
        "for x",
    )
    await stage.cluster.execute(EvictPod("default", name, uid, "Preempted", "for y"))  # it leaves already
    await stage.cluster.execute(Patch(stage.ref("Pod", "a"), {"metadata": {"finalizers": None}}, uid=uid))
    assert await stage.cluster.get("Pod", "default", name) is None


@story
async def events_are_counted(stage: Stage) -> None:
    made = await stage.pod("a")
    said = EmitEvent(stage.ref("Pod", "a"), uid_of(made), "Warning", "FailedScheduling", "no room")
    for _ in range(3):
        await stage.cluster.execute(said)
    await stage.cluster.execute(EmitEvent(stage.ref("Pod", "a"), uid_of(made), "Normal", "Scheduled", "there"))
    async with await connect_again(stage) as other:
        await other.execute(said)
    found = [
        one for one in await stage.cluster.list("Event", "default") if one["involvedObject"]["uid"] == uid_of(made)
    ]
    counts = {one["reason"]: one["count"] for one in found}
    assert counts == {"FailedScheduling": 4, "Scheduled": 1}


async def connect_again(stage: Stage) -> KubeCluster:
    """Another client, which remembers nothing."""
    return KubeCluster(stage.cluster._api._credentials, bounds=BOUNDS)


@story
async def a_lease_has_one_holder(stage: Stage) -> None:
    name = stage.name("lease")
    one, other = (Elector(stage.cluster, "default", name, who) for who in ("one", "other"))
    await asyncio.wait_for(one.acquire(), 5)
    assert not await other._try()
    assert await one._try()
    await one.release()
    await asyncio.wait_for(other.acquire(), 5)
    assert not await one._try()
