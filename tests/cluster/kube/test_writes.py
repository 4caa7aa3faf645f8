from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from cluster.kube.server import DROP, LOST, ApiServer, Fail, a_cluster, play, pod
from enbloc.api.meta import Ref
from enbloc.api.writes import BindPod, Create, Delete, EmitEvent, EvictPod, Patch, Refused, Write
from enbloc.cluster.kube.cluster import KubeCluster
from enbloc.cluster.kube.writes import is_same_creation

A = "/api/v1/namespaces/default/pods/a"
REF = Ref("Pod", "default", "a")
DECISION = {"enbloc.dev/decision": "d-1"}
Diagnosis = Callable[[ApiServer, KubeCluster], Coroutine[Any, Any, None]]


def on_a_cluster(story: Diagnosis) -> None:
    async def whole() -> None:
        async with a_cluster() as (server, cluster):
            await story(server, cluster)

    play(whole)


async def refused(cluster: KubeCluster, write: Write) -> Refused:
    with pytest.raises(Refused) as caught:
        await cluster.execute(write)
    return caught.value


def test_a_binding_names_the_uid_and_carries_annotations() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        made = server.put(pod("a"))
        assert await cluster.execute(BindPod("default", "a", made["metadata"]["uid"], "n1", DECISION)) is None
        assert server.objects[A]["spec"]["nodeName"] == "n1"
        assert server.objects[A]["metadata"]["annotations"] == DECISION
        assert server.requests == [("POST", f"{A}/binding")]
        why = await refused(cluster, BindPod("default", "a", "uid-of-a-namesake", "n1", DECISION))
        assert (why.code, why.reason) == (409, "Conflict")

    on_a_cluster(story)


@pytest.mark.parametrize("step", [LOST, DROP, Fail(503), Fail(429, retry_after="0"), Fail(504)])
def test_a_binding_whose_answer_was_lost_is_done(step: Fail | str) -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        made = server.put(pod("a"))
        server.next("POST", "/binding", step)
        await cluster.execute(BindPod("default", "a", made["metadata"]["uid"], "n1"))
        assert server.objects[A]["spec"]["nodeName"] == "n1"
        assert len(server.asked("POST", "/binding")) == 2

    on_a_cluster(story)


def test_a_binding_that_another_scheduler_won_is_refused_even_if_an_answer_was_lost() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        made = server.put(pod("a", nodeName="n2"))
        server.next("POST", "/binding", DROP)
        why = await refused(cluster, BindPod("default", "a", made["metadata"]["uid"], "n1", DECISION))
        assert why.code == 409

    on_a_cluster(story)


def test_a_binding_to_the_same_node_by_another_decision_is_refused() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        made = server.put(pod("a"))
        uid = made["metadata"]["uid"]
        await cluster.execute(BindPod("default", "a", uid, "n1", {"enbloc.dev/decision": "another"}))
        server.next("POST", "/binding", DROP)
        assert (await refused(cluster, BindPod("default", "a", uid, "n1", DECISION))).code == 409
        await cluster.execute(BindPod("default", "a", uid, "n1", {"enbloc.dev/decision": "another"}))  # is done

    on_a_cluster(story)


def test_a_lost_creation_is_recognised_by_its_owner_or_its_content() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        server.next("POST", "/pods", LOST)
        made = await cluster.execute(Create(pod("a")))
        assert made is not None
        assert made["metadata"]["uid"] == server.objects[A]["metadata"]["uid"]
        server.next("POST", "/pods", DROP)
        why = await refused(cluster, Create(pod("a", priority=7)))
        assert (why.code, why.reason) == (409, "AlreadyExists")
        assert why.existing is not None
        assert why.existing["metadata"]["uid"] == made["metadata"]["uid"]

    on_a_cluster(story)


def test_what_exists_already_is_shown_with_the_refusal() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        server.put(pod("a"))
        why = await refused(cluster, Create(pod("a")))  # the same content, but nothing was lost: it is not ours
        assert why.reason == "AlreadyExists"
        assert why.existing is not None

    on_a_cluster(story)


def test_what_exists_and_may_not_be_read_is_still_said_to_exist() -> None:
    """Controllers may create Secrets, and not read them."""

    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        server.put(pod("a"))
        server.next("GET", "/pods/a", Fail(403, "Forbidden"))
        why = await refused(cluster, Create(pod("a")))
        assert (why.code, why.reason, why.existing) == (409, "AlreadyExists", None)

    on_a_cluster(story)


def _owned(by: str, **spec: Any) -> dict[str, Any]:
    obj = pod("a", **spec)
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [{"uid": by, "controller": True}]}}


@pytest.mark.parametrize(
    "existing, wanted, same",
    [
        (_owned("x", nodeName="n1"), _owned("x"), True),
        (_owned("y"), _owned("x"), False),
        (pod("a"), _owned("x"), False),
        (_owned("x"), pod("a"), False),
        (pod("a", priority=0), pod("a"), True),
        (pod("a", priority=1), pod("a", priority=2), False),
        (pod("a"), pod("a", tolerations=[]), True),
        (pod("a", tolerations=[{"key": "k", "effect": "e"}]), pod("a", tolerations=[{"key": "k"}]), True),
        (pod("a", tolerations=[{"key": "k"}, {"key": "l"}]), pod("a", tolerations=[{"key": "k"}]), False),
    ],
)
def test_what_was_to_be_created(existing: dict[str, Any], wanted: dict[str, Any], same: bool) -> None:
    assert is_same_creation(existing, wanted) is same


def test_an_object_that_is_going_is_not_what_was_to_be_created() -> None:
    going = pod("a")
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert not is_same_creation(going, pod("a"))


def test_a_creation_without_a_name_happens_at_most_once() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        obj = {**pod(""), "metadata": {"generateName": "a-", "namespace": "default"}}
        server.next("POST", "/pods", Fail(429), DROP)
        why = await refused(cluster, Create(obj))
        assert (why.code, why.reason) == (504, "Timeout")
        assert len(server.asked("POST", "/pods")) == 2  # after a 429 nothing can have happened

    on_a_cluster(story)


def test_a_patch_pins_uid_and_version() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        made = server.put(pod("a"))
        uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
        marked: dict[str, Any] = {"metadata": {"labels": {"x": "y"}}}
        changed = await cluster.execute(Patch(REF, marked, uid=uid, resource_version=version))
        assert changed is not None
        assert changed["metadata"]["labels"] == {"x": "y"}
        assert "managedFields" not in changed["metadata"]
        assert (await refused(cluster, Patch(REF, marked, uid="uid-of-a-namesake"))).reason == "Conflict"
        assert (await refused(cluster, Patch(REF, marked, resource_version=version))).reason == "Conflict"
        assert (await refused(cluster, Patch(Ref("Pod", "default", "b"), marked))).reason == "NotFound"
        assert marked == {"metadata": {"labels": {"x": "y"}}}

    on_a_cluster(story)


def test_a_patch_of_one_version_whose_answer_was_lost_is_done() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        version = server.put(pod("a"))["metadata"]["resourceVersion"]
        server.next("PATCH", A, LOST)
        patch = Patch(REF, {"metadata": {"labels": {"x": "y"}}}, resource_version=version)
        changed = await cluster.execute(patch)
        assert changed is not None
        assert changed["metadata"]["labels"] == {"x": "y"}
        server.next("PATCH", A, DROP)
        other = Patch(REF, {"metadata": {"labels": {"x": "z"}}}, resource_version=version)
        assert (await refused(cluster, other)).reason == "Conflict"

    on_a_cluster(story)


def test_a_patch_of_any_version_survives_conflicts() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        uid = server.put(pod("a"))["metadata"]["uid"]
        server.next("PATCH", A, Fail(409, "Conflict"), Fail(409, "Conflict"))
        await cluster.execute(Patch(REF, {"status": {"phase": "Running"}}, "status", uid))
        assert server.objects[A]["status"] == {"phase": "Running"}
        assert server.asked("PATCH") == [f"{A}/status"] * 3

    on_a_cluster(story)


def test_the_status_of_a_namesake_is_not_patched_though_the_server_would() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        group = "scheduling.volcano.sh/v1beta1"
        server.groups[group] = [("podgroups", "PodGroup", True, True)]
        made = {"apiVersion": group, "kind": "PodGroup", "metadata": {"name": "g", "namespace": "default"}}
        path = server.path_of(made)
        ref = Ref("PodGroup.scheduling.volcano.sh", "default", "g")
        first = server.put(made)["metadata"]["uid"]
        await cluster.start({ref.kind}, lambda event: None)
        await cluster.execute(Patch(ref, {"status": {"phase": "Pending"}}, "status", first))
        assert server.asked("GET", "/podgroups/g") == []  # its version was event_counts
        with server.unheard():
            server.put({**server.objects[path], "spec": {"minMember": 3}})
        await cluster.execute(Patch(ref, {"status": {"phase": "Inqueue"}}, "status", first))
        assert server.objects[path]["status"] == {"phase": "Inqueue"}
        assert server.objects[path]["spec"] == {"minMember": 3}
        with server.unheard():
            server.remove(path)
            server.put(made)
        why = await refused(cluster, Patch(ref, {"status": {"phase": "Running"}}, "status", first))
        assert (why.code, why.reason) == (409, "Conflict")
        assert "status" not in server.objects[path]
        second = server.objects[path]["metadata"]["uid"]
        await cluster.execute(Patch(ref, {"status": {"phase": "Running"}}, "status", second))
        assert server.objects[path]["status"] == {"phase": "Running"}
        server.remove(path)
        assert (await refused(cluster, Patch(ref, {"status": {}}, "status", second))).reason == "NotFound"

    on_a_cluster(story)


def test_a_status_without_a_subresource_is_patched_in_the_object() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        server.groups["v1"] = [("pods", "Pod", True, False)]
        server.put(pod("a"))
        await cluster.execute(Patch(REF, {"status": {"phase": "Running"}}, "status"))
        assert server.asked("PATCH") == [A]

    on_a_cluster(story)


def test_deleting() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        uid = server.put(pod("a"))["metadata"]["uid"]
        assert (await refused(cluster, Delete(REF, "uid-of-a-namesake"))).reason == "Conflict"
        server.next("DELETE", A, Fail(500), Fail(500))
        assert await cluster.execute(Delete(REF, uid)) is None
        assert A not in server.objects
        assert (await refused(cluster, Delete(REF, uid))).reason == "NotFound"

    on_a_cluster(story)


def test_a_deletion_whose_answer_was_lost_is_done() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        uid = server.put(pod("a"))["metadata"]["uid"]
        server.next("DELETE", A, LOST)
        assert await cluster.execute(Delete(REF, uid)) is None
        uid = server.put(pod("a"))["metadata"]["uid"]
        server.next("DELETE", A, Fail(504), LOST)
        assert await cluster.execute(Delete(REF, uid)) is None
        uid = server.put(pod("a"))["metadata"]["uid"]
        server.next("DELETE", A, Fail(503))
        await refused(cluster, Delete(Ref("Pod", "default", "b")))
        server.remove(A)
        server.put(pod("a"))
        assert await cluster.execute(Delete(REF, uid)) is None  # a namesake has come: the one that was meant is gone
        assert A in server.objects

    on_a_cluster(story)


def test_an_eviction_marks_among_other_conditions_and_deletes() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        uid = server.put({**pod("a"), "status": {"conditions": [{"type": "Ready", "status": "True"}]}})["metadata"][
            "uid"
        ]
        why = await refused(cluster, EvictPod("default", "a", "uid-of-a-namesake", "PartialGang", "half of it"))
        assert why.reason == "Conflict"
        await cluster.execute(EvictPod("default", "a", uid, "PartialGang", "half of it"))
        marked = server.history[-2][3]["status"]["conditions"]
        assert [(one["type"], one.get("reason")) for one in marked] == [
            ("Ready", None),
            ("DisruptionTarget", "PartialGang"),
        ]
        assert A not in server.objects
        assert (await refused(cluster, EvictPod("default", "a", uid, "PartialGang", ""))).reason == "NotFound"

    on_a_cluster(story)


def test_events_are_counted_over_restarts_and_written_anew_when_they_expired() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        def event_counts() -> list[tuple[str, int]]:
            return [(obj["reason"], obj["count"]) for path, obj in server.objects.items() if "/events/" in path]

        why = EmitEvent(REF, "uid-1", "Warning", "Unschedulable", "no room")
        for _ in range(3):
            await cluster.execute(why)
        assert event_counts() == [("Unschedulable", 3)]
        restarted = KubeCluster(cluster._api._credentials)
        async with restarted:
            await restarted.execute(why)
            await restarted.execute(EmitEvent(REF, "uid-1", "Warning", "Unschedulable", "less room"))
        assert event_counts() == [("Unschedulable", 4), ("Unschedulable", 1)]
        server.objects.clear()
        await cluster.execute(why)
        assert event_counts() == [("Unschedulable", 1)]
        server.next("POST", "/events", LOST)
        await cluster.execute(EmitEvent(Ref("Node", "", "n1"), "uid-2", "Normal", "Lost", "and found"))
        assert event_counts() == [("Unschedulable", 1), ("Lost", 1)]

    on_a_cluster(story)


def test_a_kind_that_is_not_served_is_refused_until_it_is() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        job = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "j", "namespace": "default"},
        }
        assert (await refused(cluster, Create(job))).reason == "NotFound"
        assert await cluster.get("Job.batch.volcano.sh", "default", "j") is None
        assert await cluster.list("Job.batch.volcano.sh") == []
        server.groups["batch.volcano.sh/v1alpha1"] = [("jobs", "Job", True, True)]
        await cluster.execute(Create(job))
        assert [obj["metadata"]["name"] for obj in await cluster.list("Job.batch.volcano.sh")] == ["j"]
        del server.groups["batch.volcano.sh/v1alpha1"]
        ref = Ref("Job.batch.volcano.sh", "default", "j")
        assert (await refused(cluster, Patch(ref, {}))).message == "the cluster does not serve Job.batch.volcano.sh"

    on_a_cluster(story)


def test_a_kind_that_moves_to_another_version_is_found_there() -> None:
    async def story(server: ApiServer, cluster: KubeCluster) -> None:
        entry = [("podgroups", "PodGroup", True, True)]
        server.groups["scheduling.k8s.io/v1alpha2"] = entry
        ref = Ref("PodGroup.scheduling.k8s.io", "default", "g")
        assert (await refused(cluster, Delete(ref))).message.startswith("/apis/scheduling.k8s.io/v1alpha2/")
        server.groups["scheduling.k8s.io/v1beta1"] = server.groups.pop("scheduling.k8s.io/v1alpha2")
        assert (await refused(cluster, Delete(ref))).message.startswith("/apis/scheduling.k8s.io/v1beta1/")

    on_a_cluster(story)
