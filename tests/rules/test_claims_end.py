"""R7, P3, K6, D5: a claim ends in the very cycle in which it can no longer do what it is for, whatever the reason.

One scene for every kind of claim, and a table of reasons × kinds × dialects. The gang `g` is two pods of 3 cpu, one
for each of the nodes `n` and `m` of 4 cpu. `n` is full, `m` is free: `g` claims room from 10 s on (a hold or a later
wave's room: from 0 s on), so that the pod `next`, which comes at 12 s and asks for 2 cpu, does not start. The reason
appears at 20 s: in that instant the claim is released, its record is gone, and `next` starts on the room.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind
from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

CLASSES = [m.priority_class("high", 1000), m.priority_class("low", 10)]
BOTH = ["default/g-a", "default/g-b"]
JOB_SET = "jobset.x-k8s.io/v1alpha2"
NEXT = m.pod("next", 2, at="12s")

Make = Callable[..., list[m.Obj]]
"""The documents of the gang in one dialect; takes the time of arrival and the priority class."""


def reserving() -> m.Obj:
    """A gang that waited for 9 s gets nodes reserved; no pod is evicted."""
    arguments = {"starvingJobTimeThreshold": 9, "reservedNodePercent": 100}
    actions: list[m.Obj] = [{"name": name} for name in ("enqueue", "allocate", "backfill")]
    return {"actions": [*actions, {"name": "reserve", "arguments": arguments}]}


# ---- the gang, by dialect


def volcano_podgroup(at: str, priority: str | None) -> list[m.Obj]:
    return m.gang("g", 2, cpu=3, at=at, priority=priority, queue="q")


def volcano_job(at: str, priority: str | None) -> list[m.Obj]:
    return [m.job("g", m.role("w", 2, cpu=3), at=at, priority=priority, queue="q")]


def sigs_podgroup(at: str, priority: str | None, **more: Any) -> list[m.Obj]:
    return [m.sigs_podgroup("g", 2, at=at, **more), *m.labelled_pods("g", 2, cpu=3, at=at, priority=priority)]


def plugins_podgroup(at: str, priority: str | None) -> list[m.Obj]:
    members = m.labelled_pods("g", 2, m.PLUGINS_LABEL, 3, at=at, priority=priority)
    return [m.sigs_podgroup("g", 2, api=m.PLUGINS, at=at), *members]


def kubernetes_podgroup(at: str, priority: str | None) -> list[m.Obj]:
    group = m.native_podgroup("g", {"gang": {"minCount": 2}})
    group["metadata"]["annotations"] = {m.SIM + "at": at}
    return [group, *m.native_pods("g", 2, cpu=3, at=at, priority=priority)]


def annotations(at: str, priority: str | None, **more: Any) -> list[m.Obj]:
    return m.koordinator_gang("g", 2, cpu=3, at=at, priority=priority, **more)


def annotations_in_queue(at: str, priority: str | None, **more: Any) -> list[m.Obj]:
    return annotations(at, priority, queue="q", **more)


def scheduling_spec(at: str, priority: str | None) -> list[m.Obj]:
    members = m.owned(*m.pods(2, "g-", 3, at=at, priority=priority))
    return [m.CRDJOB_DEFINITION, m.crdjob("c"), m.scheduling_spec("c", 2, at=at), *members]


def queue_job(at: str, priority: str | None) -> list[m.Obj]:
    return [m.queue_job("g", m.role("w", 2, cpu=3, priority=priority), minimum=2, at=at)]


def kai_podgroup(at: str, priority: str | None) -> list[m.Obj]:
    return [m.kai_podgroup("g", 2, at=at), *m.kai_pods("g", 2, cpu=3, at=at, priority=priority)]


def kubernetes_workload(at: str, priority: str | None) -> list[m.Obj]:
    groups = {"g": {"gang": {"minCount": 2}}}
    return [m.native_workload("w", groups, at=at), *m.workload_pods("w", "g", 2, cpu=3, at=at, priority=priority)]


def yunikorn(at: str, priority: str | None) -> list[m.Obj]:
    notes = {
        "yunikorn.apache.org/task-group-name": "w",
        "yunikorn.apache.org/task-groups": m.task_groups({"w": 2}, "3"),
    }
    return m.pods(2, "g-", 3, at=at, priority=priority, annotations=notes, labels={"applicationId": "g"})


def owner_annotation(at: str, priority: str | None) -> list[m.Obj]:
    """Pods of a ReplicationController, whose controller does not run in a simulation."""
    metadata = m.metadata("c", annotations={"scheduling.volcano.sh/group-min-member": "2"}) | {"uid": "u-1"}
    owner = {"apiVersion": "v1", "kind": "ReplicationController", "metadata": metadata, "spec": {"replicas": 2}}
    reference = m.crdjob_owner("c", "u-1", "ReplicationController", "v1")
    return [owner, *m.owned(*m.pods(2, "g-", 3, at=at, priority=priority), by=reference)]


def job_set(at: str, priority: str | None) -> list[m.Obj]:
    jobs = [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 1}}}]
    metadata = m.metadata("c") | {"uid": "u-1"}
    owner = {"apiVersion": JOB_SET, "kind": "JobSet", "metadata": metadata, "spec": {"replicatedJobs": jobs}}
    labels = {"jobset.sigs.k8s.io/jobset-name": "c", "jobset.sigs.k8s.io/replicatedjob-name": "w"}
    return [owner, *m.pods(2, "g-", 3, at=at, priority=priority, labels=labels)]


def group_by_annotations(at: str, priority: str | None, **more: Any) -> list[m.Obj]:
    return [
        *m.koordinator_gang("g-a", 1, cpu=3, at=at, priority=priority, groups=BOTH, **more),
        *m.koordinator_gang("g-b", 1, cpu=3, at=at, priority=priority, groups=BOTH, **more),
    ]


def group_of_podgroups(at: str, priority: str | None, **more: Any) -> list[m.Obj]:
    found: list[m.Obj] = []
    for name in ("g-a", "g-b"):
        found.append(m.sigs_podgroup(name, 1, at=at, groups=BOTH, **more))
        found += m.labelled_pods(name, 1, cpu=3, at=at, priority=priority)
    return found


DIALECTS: dict[str, Make] = {
    "volcano-podgroup": volcano_podgroup,
    "volcano-job": volcano_job,
    "koordinator-podgroup": sigs_podgroup,
    "scheduler-plugins": plugins_podgroup,
    "kubernetes": kubernetes_podgroup,
    "koordinator-annotations": annotations,
    "koordinator-queue": annotations_in_queue,
    "scheduling-spec": scheduling_spec,
    "queue-job": queue_job,
    "kai": kai_podgroup,
    "kubernetes-workload": kubernetes_workload,
    "yunikorn": yunikorn,
    "owner-annotation": owner_annotation,
    "job-set": job_set,
    "group-annotations": group_by_annotations,
    "group-podgroups": group_of_podgroups,
}

# ---- the reasons, at 20 s


def target(api: str, kind: ClaimKind, name: str) -> m.Obj:
    found = {"apiVersion": api, "kind": kind, "name": name}
    return found if kind in ("Node", "Queue") else {**found, "namespace": "default"}


def delete(api: str, kind: ClaimKind, name: str) -> list[m.Obj]:
    return [{**m.step("20s", "delete"), "target": target(api, kind, name)}]


def change(api: str, kind: ClaimKind, name: str, **body: Any) -> list[m.Obj]:
    return [{**m.step("20s", "patch", patch=body), "target": target(api, kind, name)}]


NATIVE = "scheduling.k8s.io/v1beta1"


def pod_deleted(name: str) -> list[m.Obj]:
    return delete("v1", "Pod", name)


OBJECT: dict[str, tuple[str, str, str]] = {
    "volcano-podgroup": (m.SCHEDULING, "PodGroup", "g"),
    "volcano-job": (m.BATCH, "Job", "g"),
    "koordinator-podgroup": (m.SIGS, "PodGroup", "g"),
    "scheduler-plugins": (m.PLUGINS, "PodGroup", "g"),
    "kubernetes": (NATIVE, "PodGroup", "g"),
    "scheduling-spec": (m.ARBITRATOR, "SchedulingSpec", "c"),
    "queue-job": (m.ARBITRATOR, "QueueJob", "g"),
    "kai": ("scheduling.run.ai/v2alpha2", "PodGroup", "g"),
    "kubernetes-workload": ("scheduling.k8s.io/v1alpha1", "Workload", "w"),
    "job-set": (JOB_SET, "JobSet", "c"),
    "owner-annotation": ("v1", "ReplicationController", "c"),
    "group-podgroups": (m.SIGS, "PodGroup", "g-b"),
}
MINIMUM: dict[str, m.Obj] = {
    "volcano-podgroup": {"minMember": 3},
    "koordinator-podgroup": {"minMember": 3},
    "scheduler-plugins": {"minMember": 3},
    "kubernetes": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    "scheduling-spec": {"minAvailable": 3},
    "kai": {"minMember": 3},
    "job-set": {"replicatedJobs": [{"name": "w", "replicas": 3, "template": {"spec": {"parallelism": 1}}}]},
    "kubernetes-workload": {"podGroups": [{"name": "g", "policy": {"gang": {"minCount": 3}}}]},
    "group-podgroups": {"minMember": 2},
}
WITH_MIN_RESOURCES = ("volcano-podgroup", "koordinator-podgroup", "scheduler-plugins", "group-podgroups")
WITH_GROUPS = ("koordinator-podgroup", "scheduler-plugins")
IN_QUEUE = ("volcano-podgroup", "volcano-job", "koordinator-queue")
BARE_PODS = {
    "volcano-podgroup": "g-1",
    "koordinator-podgroup": "g-1",
    "scheduler-plugins": "g-1",
    "kubernetes": "g-1",
    "koordinator-annotations": "g-1",
    "scheduling-spec": "g-1",
    "kai": "g-1",
    "kubernetes-workload": "g-1",
    "owner-annotation": "g-1",
    "job-set": "g-1",
    "group-annotations": "g-b-0",
    "group-podgroups": "g-b-0",
}
MARKED = {key: BARE_PODS[key] for key in ("koordinator-annotations", "koordinator-podgroup", "group-annotations")}

TIMED_OUT = {"metadata": {"annotations": {m.KOORDINATOR + "timeout": "true"}}}


def gang_reasons() -> list[tuple[str, str, list[m.Obj]]]:
    """Dialect, reason, what happens at 20 s."""
    # Pods of a JobSet are not its own but its Jobs', which are not part of this scene: they would stay.
    found = [(dialect, "object-deleted", delete(*where)) for dialect, where in OBJECT.items() if dialect != "job-set"]
    found += [case for dialect in IN_QUEUE for case in queue_reasons(dialect)]
    found += [(dialect, "minimum-raised", change(*OBJECT[dialect], spec=spec)) for dialect, spec in MINIMUM.items()]
    raised = {"metadata": {"annotations": {m.KOORDINATOR + "min-available": "3"}}}
    found.append(("koordinator-annotations", "minimum-raised", change("v1", "Pod", "g-0", **raised)))
    beyond = {"spec": {"minResources": {"cpu": "100"}}}
    found += [(dialect, "min-resources-beyond", change(*OBJECT[dialect], **beyond)) for dialect in WITH_MIN_RESOURCES]
    found += [(dialect, "pod-deleted", pod_deleted(name)) for dialect, name in BARE_PODS.items()]
    found += [(dialect, "pod-timed-out", change("v1", "Pod", name, **TIMED_OUT)) for dialect, name in MARKED.items()]
    bad = {"metadata": {"annotations": {m.KOORDINATOR + "min-available": "two"}}}
    changed = [step for name in ("g-0", "g-1") for step in change("v1", "Pod", name, **bad)]
    found.append(("koordinator-annotations", "minimum-bad", changed))
    found += [(dialect, "minimum-bad", change(*OBJECT[dialect], **bad)) for dialect in WITH_GROUPS]
    joined = {"metadata": {"annotations": {m.KOORDINATOR + "groups": '["default/g", "default/h"]'}}}
    found.append(("koordinator-annotations", "group-incomplete", change("v1", "Pod", "g-0", **joined)))
    found += [(dialect, "group-incomplete", change(*OBJECT[dialect], **joined)) for dialect in WITH_GROUPS]
    # The API lets no pod be gated later: it is replaced.
    gated = m.pod("g-1", 3, group="g", schedulingGates=[{"name": "wait"}], at="20s")
    found.append(("volcano-podgroup", "pod-gated", [*pod_deleted("g-1"), gated]))
    aborted = [m.command("abort", "AbortJob", "20s", "g")]
    found.append(("volcano-job", "job-aborted", aborted))
    return found


def queue_reasons(dialect: str) -> list[tuple[str, str, list[m.Obj]]]:
    lowered = change(m.SCHEDULING, "Queue", "q", spec={"capability": {"cpu": "5"}})
    allowed = {"metadata": {"annotations": {"enbloc.dev/allowed-namespaces": "other"}}}
    return [
        (dialect, "queue-deleted", delete(m.SCHEDULING, "Queue", "q")),
        (dialect, "capability-lowered", lowered),
        (dialect, "namespace-not-allowed", change(m.SCHEDULING, "Queue", "q", **allowed)),
    ]


def node_reasons(name: str) -> dict[str, list[m.Obj]]:
    return {
        "node-deleted": delete("v1", "Node", name),
        "node-cordoned": change("v1", "Node", name, spec={"unschedulable": True}),
        "node-tainted": change("v1", "Node", name, spec={"taints": [{"key": "k", "effect": "NoSchedule"}]}),
        "node-not-ready": change("v1", "Node", name, status={"conditions": [{"type": "Ready", "status": "False"}]}),
        "node-shrunk": change("v1", "Node", name, status={"allocatable": {"cpu": "2"}}),
    }


def cases() -> list[Any]:
    found = gang_reasons()
    found += [(dialect, reason, steps) for dialect in DIALECTS for reason, steps in node_reasons("n").items()]
    return [pytest.param(dialect, steps, id=f"{reason}-{dialect}") for dialect, reason, steps in found]


# ---- what must hold


def claimed_by(answer: Answer, kind: ClaimKind) -> list[str]:
    """Objects whose record of this kind has slots at the end; the record of a hold without any is a clock (K8)."""
    found: list[str] = []
    for one in answer.objects:
        record = claim_records.read((one["metadata"].get("annotations") or {}).get(kind.annotation))
        if record is not None and record.slots:
            found.append(one["metadata"]["name"])
    return found


def assert_ends_at_once(kind: ClaimKind, *documents: Any, config: m.Obj | None = None) -> None:
    *scene, reason = documents
    before = simulate(*scene, config=config, until="60s")
    assert claimed_by(before, kind), "without the reason the claim stays"
    assert before.at("next") is None, "without the reason no other gang uses the room"
    answer = simulate(*scene, reason, config=config, until="60s")
    assert answer.at("next") == 20.0
    assert not claimed_by(answer, kind)
    assert not answer.bound("g-")


@pytest.mark.parametrize(("dialect", "steps"), cases())
def test_r7_a_reservation_ends_in_the_instant_of_its_reason(dialect: str, steps: list[m.Obj]) -> None:
    full = m.pod("full", 4, nodeName="n")
    nodes = [m.queue("q"), m.node("n"), m.node("m")]
    scene = [CLASSES, *nodes, full, DIALECTS[dialect]("1s", None), NEXT]
    assert_ends_at_once(ClaimKind.RESERVE, *scene, steps, config=reserving())


@pytest.mark.parametrize(("dialect", "steps"), cases())
def test_p3_a_nomination_ends_in_the_instant_of_its_reason(dialect: str, steps: list[m.Obj]) -> None:
    queue = "q" if dialect in IN_QUEUE else "default"  # preempt takes victims of the same queue
    victim = m.pod("victim", 4, nodeName="n", priority="low", stop_delay="1h", queue=queue)
    nodes = [m.queue("q"), m.node("n"), m.node("m")]
    scene = [CLASSES, *nodes, victim, DIALECTS[dialect]("10s", "high"), NEXT]
    assert_ends_at_once(ClaimKind.PREEMPT, *scene, steps)


# ---- holds: only NonStrict gangs have them


def stays_complete(dialect: str, reason: str) -> bool:
    """K6: a complete NonStrict gang keeps what it holds while another gang of its group is incomplete."""
    lost = ("object-deleted", "minimum-raised", "pod-deleted")
    return (
        reason == "group-incomplete"
        or (dialect == "group-podgroups" and reason in lost)
        or (dialect == "group-annotations" and reason == "pod-deleted")
    )


def hold_cases() -> list[Any]:
    makers = (
        "koordinator-podgroup",
        "koordinator-annotations",
        "koordinator-queue",
        "group-annotations",
        "group-podgroups",
    )
    found = [case for case in gang_reasons() if case[0] in makers and not stays_complete(*case[:2])]
    found += [(dialect, "node-shrunk", node_reasons("m")["node-shrunk"]) for dialect in makers]
    return [pytest.param(dialect, steps, id=f"{reason}-{dialect}") for dialect, reason, steps in found]


@pytest.mark.parametrize(("dialect", "steps"), hold_cases())
def test_k6_a_hold_ends_in_the_instant_of_its_reason(dialect: str, steps: list[m.Obj]) -> None:
    held = DIALECTS[dialect]("1s", None, mode=m.NON_STRICT)
    scene = [m.queue("q"), m.node("n"), m.node("m"), m.pod("full", 4, nodeName="n"), held, NEXT]
    answer = simulate(*scene, steps, until="19s")
    assert len(answer.lines("held")) == 1
    assert_ends_at_once(ClaimKind.HOLD, *scene, steps)


# ---- later waves: whole-job gangs have them, and YuniKorn's applications


def wave_of_a_job() -> list[m.Obj]:
    master = m.role("master", 1, cpu=1, start_delay="1h", nodeSelector={"kubernetes.io/hostname": "o"})
    workers = m.role("work", 2, cpu=3, depends_on={"name": ["master"]})
    return [m.job("g", master, workers, queue="q", annotations={"enbloc.dev/depends-on-gang": "true"})]


def wave_of_an_application() -> list[m.Obj]:
    groups = [
        {"name": "driver", "minMember": 1, "minResource": {"cpu": "1"}},
        {"name": "executor", "minMember": 2, "minResource": {"cpu": "3"}},
    ]
    prefix = "yunikorn.apache.org/task-group"
    notes = {f"{prefix}-name": "driver", f"{prefix}s": json.dumps(groups)}
    labels = {"applicationId": "g", "volcano.sh/queue-name": "q"}
    selector = {"kubernetes.io/hostname": "o"}
    return [m.pod("g-driver", 1, annotations=notes, labels=labels, nodeSelector=selector, start_delay="1h")]


def wave_cases() -> list[Any]:
    common = {
        "queue-deleted": delete(m.SCHEDULING, "Queue", "q"),
        "capability-lowered": change(m.SCHEDULING, "Queue", "q", spec={"capability": {"cpu": "3"}}),
        "capability-lowered-with-master": change(m.SCHEDULING, "Queue", "q", spec={"capability": {"cpu": "6"}}),
        **node_reasons("n"),
        **{f"other-{key}": value for key, value in node_reasons("m").items()},
    }
    of_job = {
        "job-deleted": delete(m.BATCH, "Job", "g"),
        "job-aborted": [m.command("abort", "AbortJob", "20s", "g")],
        "job-completed": [m.command("complete", "CompleteJob", "20s", "g")],
    }
    found = [("volcano-job", wave_of_a_job, reason, steps) for reason, steps in (of_job | common).items()]
    of_application = {"driver-deleted": pod_deleted("g-driver")} | common
    found += [("yunikorn", wave_of_an_application, reason, steps) for reason, steps in of_application.items()]
    return [pytest.param(make, steps, id=f"{reason}-{dialect}") for dialect, make, reason, steps in found]


@pytest.mark.parametrize(("make", "steps"), wave_cases())
def test_d5_a_later_waves_claim_ends_in_the_instant_of_its_reason(
    make: Callable[[], list[m.Obj]], steps: list[m.Obj]
) -> None:
    scene = [m.queue("q"), m.node("n"), m.node("m"), m.node("o", 1), make(), NEXT]
    before = simulate(*scene, until="60s")
    assert claimed_by(before, ClaimKind.WAVE)
    assert before.at("next") is None
    answer = simulate(*scene, steps, until="60s")
    assert answer.at("next") == 20.0
    assert not claimed_by(answer, ClaimKind.WAVE)
