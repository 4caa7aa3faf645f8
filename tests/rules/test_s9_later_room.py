"""S9: room for pods that do not exist (whole-job gangs, task groups) is within the namespace's quota when it is
claimed, and an owner that let such a claim lapse waits before it makes the next one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from enbloc.api.meta import Obj
from enbloc.gangs import lapse_records
from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

GROUPS = "yunikorn.apache.org/task-groups"
GROUP = "yunikorn.apache.org/task-group-name"
WHOLE = {"enbloc.dev/depends-on-gang": "true"}
NODE = m.node("n", 32, memory="64Gi")
DEADLINE = 600.0


def driver(name: str, *, later: int = 31, namespace: str = "a", asked: Obj | None = None, **options: Any) -> Obj:
    """A pod of 1m CPU whose task groups ask for room for pods that nobody creates."""
    groups = [
        {"name": "d", "minMember": 1, "minResource": {"cpu": "1m"}},
        {"name": "e", "minMember": later, "minResource": asked or {"cpu": "1"}},
    ]
    annotations = {GROUPS: json.dumps(groups), GROUP: "d"}
    labels = {"applicationId": name, **options.pop("labels", {})}
    return m.pod(name, "1m", namespace=namespace, annotations=annotations, labels=labels, **options)


def whole_job(name: str, *, later: int = 31, namespace: str = "a", role: Obj | None = None, **options: Any) -> Obj:
    """A first wave of 1m CPU that is never ready, and so a second one that is never created."""
    first = m.role("first", 1, cpu="1m", start_delay="100000s")
    second = {**(role or m.role("second", later)), "dependsOn": {"name": ["first"]}}
    return m.job(name, first, second, namespace=namespace, annotations=WHOLE, **options)


ONE = json.dumps([{"name": "d", "minMember": 1, "minResource": {}}])
CLAIMANTS = pytest.mark.parametrize("claimant", [driver, whole_job])


def victim(**options: Any) -> Obj:
    return m.job("victim", m.role("w", 4, cpu=4), namespace="b", at="5s", **options)


def quota(hard: dict[str, str], namespace: str = "a", name: str = "q", **spec: Any) -> Obj:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}}


def starts(answer: Answer, *names: str) -> list[float | None]:
    """When the first pod of each gang was bound."""
    return [min(times) if (times := answer.times(name)) else None for name in names]


def lapsed(answer: Answer, queue: str = "default") -> dict[str, int]:
    text = answer.obj("Queue", queue, "")["metadata"]["annotations"][lapse_records.ANNOTATION]
    assert text.startswith("hmac:key-1:")
    found: dict[str, int] = json.loads(text.split(":", 3)[3])["until_ns"]
    return found


# ---- the attacks


@CLAIMANTS
def test_s9_six_claims_of_one_owner_do_not_delay_others_one_after_the_other(claimant: Any) -> None:
    answer = simulate(NODE, [claimant(f"x{n}") for n in range(6)], victim(), until="7200s")
    assert starts(answer, "victim") == [DEADLINE]


@CLAIMANTS
def test_s9_from_another_queue_too(claimant: Any) -> None:
    answer = simulate(
        NODE, m.queue("other"), [claimant(f"x{n}") for n in range(6)], victim(queue="other"), until="7200s"
    )
    assert starts(answer, "victim") == [DEADLINE]


@CLAIMANTS
def test_s9_a_quota_stops_them_at_once(claimant: Any) -> None:
    objects = [NODE, quota({"requests.cpu": "1"}), [claimant(f"x{n}") for n in range(6)], victim()]
    answer = simulate(*objects, until="100s")
    assert starts(answer, "victim", "x") == [5.0, None]
    assert answer.pending("a/x0")["reason"] == "ClaimNotAllowed"
    assert "exceed quota: q" in answer.why("a/x0")
    assert "requested: requests.cpu=31" in answer.why("a/x0")
    assert "limited: requests.cpu=1" in answer.why("a/x0")


def test_s9_what_is_deleted_before_its_deadline_has_lapsed_too() -> None:
    """A pod is deleted after 500 s, and another one with its name comes."""
    first, again = driver("x", delete_at="500s"), driver("x", at="501s")
    answer = simulate(NODE, first, again, until="2000s")
    assert answer.times("x") == [0.0, 1000.0]


@pytest.mark.parametrize(
    "change",
    [
        m.patch("500s", "Pod", "x", metadata={"annotations": {GROUPS: ONE}}),
        m.patch("500s", "Pod", "x", metadata={"annotations": {GROUPS: "[]"}}),
        m.step("500s", "delete", "Pod", "x"),
    ],
    ids=["scaled down", "invalid", "deleted"],
)  # fmt: skip
def test_s9_no_edit_makes_a_claim_not_lapsed(change: Obj) -> None:
    objects = [NODE, driver("x", namespace="default"), driver("y", namespace="default", at="1s")]
    answer = simulate(*objects, change, until="2000s")
    assert starts(answer, "x", "y") == [0.0, 1000.0]


def test_s9_pods_that_do_not_fit_their_room_do_not_use_it() -> None:
    large = m.pod("x-e", 40, namespace="a", at="500s", labels={"applicationId": "x"}, annotations={GROUP: "e"})
    answer = simulate(NODE, driver("x"), driver("y", at="1s"), large, until="2000s")
    assert starts(answer, "y") == [1000.0]


def test_s9_what_is_left_of_a_claim_has_lapsed() -> None:
    """One of 31 pods is created."""
    one = m.pod(
        "x-e", 1, namespace="a", at="100s", labels={"applicationId": "x"}, annotations={GROUP: "e"}, run_time="10s"
    )
    answer = simulate(NODE, driver("x"), driver("y", at="1s"), one, until="2000s")
    assert starts(answer, "x-e", "y") == [100.0, 2 * DEADLINE]


# ---- what has not lapsed


def test_s9_a_claim_that_was_used_delays_no_next_one() -> None:
    made = m.job(
        "x",
        m.role("first", 1, run_time="60s", start_delay="10s"),
        {**m.role("second", 31, run_time="30s"), "dependsOn": {"name": ["first"]}},
        namespace="a",
        annotations=WHOLE,
    )
    answer = simulate(NODE, made, driver("y", later=30, at="1s"), until="100s")
    assert starts(answer, "x-second", "y") == [10.0, 40.0]


def test_s9_a_claim_whose_node_went_has_not_lapsed() -> None:
    nodes = [m.node("n", 32, delete_at="100s"), m.node("late", 32, at="101s")]
    answer = simulate(nodes, whole_job("x"), until="400s")
    assert answer.times("x") == [0.0, 101.0]
    assert lapse_records.ANNOTATION not in answer.obj("Queue", "default", "")["metadata"].get("annotations", {})


def test_s9_a_gang_that_was_evicted_did_not_let_its_claim_lapse() -> None:
    classes = [m.priority_class("high", 10), m.priority_class("low", 1)]
    high = m.pod("high", 32, namespace="b", at="100s", priority="high", run_time="50s")
    answer = simulate(NODE, classes, whole_job("x", priority="low"), high, until="400s")
    assert starts(answer, "high") == [100.0]
    assert answer.evicted("x") == [(100.0, "x-first-0")]
    assert answer.times("x") == [0.0, 150.0]
    assert lapse_records.ANNOTATION not in answer.obj("Queue", "default", "")["metadata"].get("annotations", {})


# ---- whose claims


@CLAIMANTS
def test_s9_the_owner_is_namespace_and_queue(claimant: Any) -> None:
    other = m.queue("other")
    objects = [m.node("n", 32), other, claimant("x"), claimant("y", at="1s")]
    objects += [claimant("z", at="2s", namespace="c"), claimant("o", at="3s", **in_queue(claimant, "other"))]
    answer = simulate(*objects, until="3000s")
    assert starts(answer, "x", "z", "o", "y") == [0.0, 1800.0, 600.0, 1200.0], (
        "y is older than z, and may claim again when that one may"
    )


def in_queue(claimant: Any, queue: str) -> Obj:
    return {"queue": queue} if claimant is whole_job else {"labels": {"queue": queue}}


def test_s9_the_queue_at_the_time_of_the_claim_counts() -> None:
    moved = m.patch("500s", "Pod", "x", metadata={"labels": {"queue": "other"}})
    x, y = driver("x", namespace="default"), driver("y", namespace="default", at="1s")
    answer = simulate(NODE, m.queue("other"), x, y, moved, until="2000s")
    assert starts(answer, "y") == [2 * DEADLINE]


def test_s9_gangs_that_claim_nothing_start_meanwhile() -> None:
    """Of the owner that waits, too."""
    answer = simulate(
        NODE, driver("x"), driver("y", at="1s"), m.pod("plain", 31, namespace="a", at="700s"), until="900s"
    )
    assert starts(answer, "plain", "y") == [700.0, None]
    assert answer.pending("a/y")["reason"] == "ClaimNotAllowed"
    assert "00:20:00Z" in answer.why("a/y")


def test_s9_one_that_waits_is_not_in_line() -> None:
    """In a strict FIFO queue it blocks nobody."""
    line = m.queue("line", dequeueStrategy="fifo")
    drivers = [driver(name, labels={"queue": "line"}) for name in ("x", "y")]
    answer = simulate(NODE, line, *drivers, victim(queue="line"), until="700s")
    assert starts(answer, "victim") == [DEADLINE]


def test_s9_at_most_an_hour() -> None:
    config = {"dependsOn": {"gangDeadline": "3h"}}
    answer = simulate(NODE, driver("x"), driver("y", at="1s"), config=config, until="20000s")
    assert starts(answer, "y") == [3 * 3600 + 3600]


@CLAIMANTS
def test_s9_a_restart_changes_nothing(claimant: Any) -> None:
    """While the claim stands, at the instant when it lapses, and while its owner waits."""
    for at in ("300s", "600s", "601s", "900s", "1200s"):
        answer = simulate(NODE, claimant("x"), claimant("y", at="1s"), m.restart(at), until="1500s")
        assert starts(answer, "x", "y") == [0.0, 2 * DEADLINE], at


def test_s9_the_record_is_on_the_queue_and_ends() -> None:
    answer = simulate(NODE, driver("x"), until="700s")
    assert list(lapsed(answer)) == ["a"]
    again = simulate(NODE, driver("x"), driver("y", at="1s", namespace="c"), until="1300s")
    assert list(lapsed(again)) == ["c"], "what is over is dropped when the next one is recorded"


def test_s9_a_record_that_was_forged_holds_nobody() -> None:
    text = lapse_records.write(lapse_records.LapseRecord({"b": 10**19 // 2}))
    forged = m.queue("forged")
    forged["metadata"]["annotations"] = {lapse_records.ANNOTATION: text}
    made = driver("x", namespace="b", labels={"queue": "forged"})
    assert starts(simulate(NODE, forged, made, until="100s"), "x") == [0.0]


# ---- quotas


def test_s9_claims_that_stand_count_as_if_their_pods_existed() -> None:
    made = [driver("x", later=10), driver("y", later=10, at="1s"), driver("z", later=5, at="2s")]
    answer = simulate(NODE, quota({"requests.cpu": "16"}), made, until="100s")
    assert starts(answer, "x", "y", "z") == [0.0, None, 2.0]


def test_s9_pods_that_took_their_room_count_once() -> None:
    executors = [
        m.pod(f"x-e-{n}", 1, namespace="a", at="10s", labels={"applicationId": "x"}, annotations={GROUP: "e"})
        for n in range(4)
    ]
    made = [driver("x", later=4), driver("y", later=3, at="20s")]
    answer = simulate(NODE, quota({"requests.cpu": "8"}), made, executors, until="100s")
    assert starts(answer, "x", "x-e", "y") == [0.0, 10.0, 20.0]


def test_s9_two_claims_of_one_instant_are_checked_together() -> None:
    made = [driver("x", later=10), driver("y", later=10)]
    answer = simulate(NODE, quota({"requests.cpu": "16"}), made, until="100s")
    assert starts(answer, "x", "y") == [0.0, None]
    assert answer.pending("a/y")["reason"] == "ClaimNotAllowed"


@pytest.mark.parametrize(
    "helps",
    [
        m.patch("50s", "ResourceQuota", "q", spec={"hard": {"requests.cpu": "32"}}),
        m.step("50s", "delete", "ResourceQuota", "q"),
        m.step("50s", "delete", "Pod", "uses"),
    ],
    ids=["raised", "deleted", "used less"],
)
def test_s9_a_quota_that_has_room_again_wakes_the_gang(helps: Obj) -> None:
    used = m.pod("uses", 1)
    hard = quota({"requests.cpu": "10"}, namespace="default")
    made = driver("x", later=10, namespace="default", at="1s")
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "0"
    answer = simulate(NODE, hard, used, made, helps, until="100s")
    assert starts(answer, "x") == [50.0]


def test_s9_a_quota_that_was_lowered_ends_no_claim() -> None:
    """It is checked when room is claimed."""
    lowered = m.patch("50s", "ResourceQuota", "q", spec={"hard": {"requests.cpu": "1"}})
    made = driver("x", namespace="default")
    other = m.pod("other", 4, namespace="b", at="60s")
    answer = simulate(NODE, quota({"requests.cpu": "32"}, "default"), made, lowered, other, until="100s")
    assert starts(answer, "x", "other") == [0.0, None]


def of_class(operator: str, *values: str) -> Obj:
    scope: Obj = {"scopeName": "PriorityClass", "operator": operator}
    return {"scopeSelector": {"matchExpressions": [scope | ({"values": [*values]} if values else {})]}}


@pytest.mark.parametrize(
    ("hard", "spec", "allowed"),
    [
        ({"requests.cpu": "4"}, {}, True),
        ({"requests.cpu": "3"}, {}, False),
        ({"cpu": "3"}, {}, False),
        ({"requests.memory": "3Gi"}, {}, False),
        ({"memory": "8Gi"}, {}, True),
        ({"limits.cpu": "7"}, {}, False),
        ({"limits.cpu": "8"}, {}, True),
        ({"limits.memory": "3Gi"}, {}, False),
        ({"pods": "4"}, {}, False),
        ({"pods": "5"}, {}, True),
        ({"count/pods": "4"}, {}, False),
        ({"requests.example.com/gpu": "3"}, {}, False),
        ({"requests.example.com/gpu": "4"}, {}, True),
        ({"pods": "1"}, {"scopes": ["BestEffort"]}, True),
        ({"pods": "3"}, {"scopes": ["NotBestEffort"]}, False),
        ({"pods": "1"}, {"scopes": ["Terminating"]}, True),
        ({"pods": "4"}, {"scopes": ["NotTerminating"]}, False),
        ({"pods": "1"}, of_class("In", "low"), True),
        ({"pods": "1"}, of_class("Exists"), True),
        ({"pods": "4"}, of_class("DoesNotExist"), False),
        ({"services": "0", "persistentvolumeclaims": "0"}, {}, True),
        ({"pods": "1"}, {"scopes": ["CrossNamespacePodAffinity"]}, True),
    ],
)  # fmt: skip
def test_s9_what_quotas_count(hard: dict[str, str], spec: Obj, allowed: bool) -> None:
    """A first pod without requests, and room for four of 1 CPU, at most 2, 1Gi and one device each."""
    limits = {"cpu": "2", "memory": "1Gi", "example.com/gpu": "1"}
    requests = {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}
    role = m.role("second", 4)
    role["template"]["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": limits}
    first = {**m.role("first", 1, cpu="0", start_delay="1000s")}
    resources = {"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": "0", "memory": "0"}}
    first["template"]["spec"]["containers"][0]["resources"] = resources
    made = m.job("x", first, {**role, "dependsOn": {"name": ["first"]}}, namespace="a", annotations=WHOLE)
    node = m.node("n", 32, extra={"example.com/gpu": 8})
    answer = simulate(node, quota(hard, **spec), made, until="50s")
    assert bool(answer.times("x")) is allowed, answer.why("a/x") if answer.waits("a/x") else ""


@pytest.mark.parametrize("limited", [True, False])
@CLAIMANTS
def test_s9_scopes_by_the_class_that_the_pods_will_carry(claimant: Any, limited: bool) -> None:
    """A Job's pods inherit its class; those of a task group have that of the pod that declares it."""
    made = claimant("x", priority="low")
    objects = [m.priority_class("low", 5), quota({"pods": "5"}, **of_class("In", "low" if limited else "x")), made]
    answer = simulate(NODE, *objects, until="50s")
    assert bool(answer.times("x")) is not limited


def test_s9_task_groups_without_limits_count_with_their_requests() -> None:
    """No limit is below the request."""
    answer = simulate(NODE, quota({"limits.cpu": "4"}), with_limit(driver("x", later=4)), until="50s")
    assert starts(answer, "x") == [None]


def with_limit(pod: Obj) -> Obj:
    pod["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "1"}
    return pod


# ---- other actions


def test_s9_no_pod_is_evicted_and_no_node_reserved_for_a_claim_that_is_not_allowed() -> None:
    arguments = {"starvingJobTimeThreshold": 10, "reservedNodePercent": 100}
    actions: list[Obj] = [{"name": name} for name in ("enqueue", "allocate", "preempt")]
    config = {"actions": [*actions, {"name": "reserve", "arguments": arguments}]}
    low = m.job("low", m.role("w", 30), namespace="b")
    made = whole_job("x", at="5s", priority="high")
    objects = [NODE, m.priority_class("high", 10), quota({"requests.cpu": "4"}), low, made]
    answer = simulate(*objects, config=config, until="100s")
    assert not answer.evicted()
    assert not answer.lines("reserved")
    assert answer.pending("a/x")["reason"] == "ClaimNotAllowed"
