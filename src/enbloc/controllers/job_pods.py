"""The pods of a job: names, labels and annotations as Volcano's users know them (V0), patched by plugins (V3).

Pods of one role share what is equal in them; nothing of the template is copied unless a plugin changes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref, annotations_of, controller_reference
from enbloc.api.writes import Delete, Patch, Write
from enbloc.controllers.job_plugin import Plugin, PodPatch, patched
from enbloc.controllers.job_pod_counts import DELETED, EVICTED_AT, RUN, TERMINATING, PodCounts
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.controllers.job_volumes import add_volumes
from enbloc.controllers.lifecycle import Runs, has_policies
from enbloc.gangs.own_annotations import without_own
from enbloc.units import format_timestamp, is_label_value

TEMPLATE_UID: Final = "volcano.sh/template-uid"
GROUP_NAME: Final = volcano.GROUP_NAME_KEYS[0]
_FROM_JOB: Final = ("volcano.sh/preemptable", "volcano.sh/cooldown-time")


def pod_name(job: str, role: str, index: int) -> str:
    return f"{job}-{role}-{index}"


class PodBuilder:
    """Builds the pods of one role."""

    def __init__(self, plan: JobPlan, role: Role, plugins: list[Plugin], runs: Runs) -> None:
        self._plan = plan
        self._role = role
        self._plugins = plugins
        self._spec = _spec(plan, role)
        self._labels = _labels(plan, role)
        self._runs = runs
        self._annotations = _annotations(plan, role, runs)
        self._owners = [controller_reference(plan.obj)]

    def pod(self, index: int, evicted_at: int | None = None) -> Obj:
        """`evicted_at`: when the pod that it replaces was evicted, if a policy still waits for its timeout."""
        name = pod_name(self._plan.name, self._role.name, index)
        own = {volcano.TASK_INDEX: str(index)}
        run = self._runs.of(self._role.name, name)
        if run:
            own[RUN] = str(run)
        if evicted_at is not None:
            own[EVICTED_AT] = format_timestamp(evicted_at)
        patch = PodPatch()
        add_volumes(self._plan, patch)
        for plugin in self._plugins:
            plugin.patch_pod(self._plan, self._role, index, patch)
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": self._plan.namespace,
                "labels": self._labels | {volcano.TASK_INDEX: str(index)} | patch.labels,
                "annotations": self._annotations | own,
                "ownerReferences": self._owners,
            },
            "spec": patched(self._spec, patch),
        }


def _spec(plan: JobPlan, role: Role) -> dict[str, Any]:
    """The template's spec, with the job's scheduler and priority class where it names none."""
    spec: dict[str, Any] = role.template["spec"]
    missing = {}
    if not spec.get("schedulerName"):
        missing["schedulerName"] = plan.scheduler_name
    if plan.inherited_class and not spec.get("priorityClassName"):
        missing["priorityClassName"] = plan.inherited_class
    if spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        missing["dnsPolicy"] = "ClusterFirstWithHostNet"  # else the node's DNS, which does not know the job's hosts
    return spec | missing


def _labels(plan: JobPlan, role: Role) -> dict[str, str]:
    labels = dict((role.template.get("metadata") or {}).get("labels") or {})
    labels[volcano.JOB_NAME] = plan.name
    labels[volcano.JOB_NAMESPACE] = plan.namespace
    labels[volcano.TASK_SPEC] = role.name
    if is_label_value(plan.queue):
        labels[volcano.QUEUE_NAME] = plan.queue
    return labels


def _annotations(plan: JobPlan, role: Role, runs: Runs) -> dict[str, str]:
    annotations = {key: value for key, value in annotations_of(plan.obj).items() if key in _FROM_JOB}
    annotations |= without_own((role.template.get("metadata") or {}).get("annotations") or {})
    return annotations | {
        GROUP_NAME: plan.group_name,
        volcano.JOB_NAME: plan.name,
        volcano.QUEUE_NAME: plan.queue,
        volcano.TASK_SPEC: role.name,
        volcano.JOB_VERSION: str(runs.version),
        volcano.JOB_RETRY: str(runs.retries),
        TEMPLATE_UID: f"{plan.name}-{role.name}",
    }


def missing_pods(plan: JobPlan, begun: Collection[str], pod_counts: PodCounts) -> Iterator[tuple[Role, int]]:
    """The roles and indexes without a pod, in their order."""
    for role in plan.roles:
        if role.name in begun:
            for index in range(role.replicas):
                if pod_name(plan.name, role.name, index) not in pod_counts.pods:
                    yield role, index


def surplus_pods(plan: JobPlan, role: Role, pod_counts: PodCounts) -> list[Write]:
    """Deletes the pods of a role beyond its replicas, the highest index first."""
    above = [
        member
        for member in pod_counts.pods.values()
        if member.role == role.name and member.index >= role.replicas and member.phase != TERMINATING
    ]
    above.sort(key=lambda member: -member.index)
    writes: list[Write] = []
    for member in above:
        ref = Ref("Pod", plan.namespace, member.name)
        if has_policies(plan):
            writes.append(Patch(ref, {"metadata": {"annotations": {DELETED: "true"}}}, uid=member.uid))
        writes.append(Delete(ref, member.uid))
    return writes
