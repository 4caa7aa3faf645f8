"""N2, V1: the definitions have every field of the peer's release, and one that exists is never narrowed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from enbloc.api.meta import Obj
from enbloc.install.definitions import DEFINED, definitions
from enbloc.install.manifests import Settings, manifests, merged_definitions
from enbloc.install.merging import OWN_LABEL, field_paths, merge
from support.schema_check import structural_faults


def ours(kind: str) -> Obj:
    return dict(zip(DEFINED, definitions({OWN_LABEL: "enbloc"}), strict=True))[kind]


POD_GROUP, JOB, QUEUE = "PodGroup.scheduling.volcano.sh", "Job.batch.volcano.sh", "Queue.scheduling.volcano.sh"
RELEASE = {
    POD_GROUP: """
        spec.minMember spec.minTaskMember spec.minResources spec.queue spec.priorityClassName
        spec.networkTopology.mode spec.networkTopology.highestTierAllowed spec.networkTopology.highestTierName
        spec.subGroupPolicy[].name spec.subGroupPolicy[].labelSelector.matchLabels
        spec.subGroupPolicy[].labelSelector.matchExpressions[].key spec.subGroupPolicy[].matchLabelKeys
        spec.subGroupPolicy[].minSubGroups spec.subGroupPolicy[].subGroupSize
        spec.subGroupPolicy[].networkTopology.mode
        status.phase status.conditions status.running status.succeeded status.failed
    """,
    JOB: """
        spec.schedulerName spec.minAvailable spec.volumes[].mountPath spec.volumes[].volumeClaimName
        spec.volumes[].volumeClaim spec.policies[].action spec.policies[].event spec.policies[].events
        spec.policies[].exitCode spec.policies[].timeout spec.plugins spec.runningEstimate spec.queue spec.maxRetry
        spec.ttlSecondsAfterFinished spec.priorityClassName spec.minSuccess spec.networkTopology.highestTierName
        spec.tasks[].name spec.tasks[].replicas spec.tasks[].minAvailable spec.tasks[].template
        spec.tasks[].policies[].action spec.tasks[].topologyPolicy spec.tasks[].maxRetry spec.tasks[].dependsOn.name
        spec.tasks[].dependsOn.iteration spec.tasks[].partitionPolicy.totalPartitions
        spec.tasks[].partitionPolicy.partitionSize spec.tasks[].partitionPolicy.minPartitions
        spec.tasks[].partitionPolicy.networkTopology.mode
        status.state.phase status.state.reason status.state.message status.state.lastTransitionTime
        status.minAvailable status.taskStatusCount status.pending status.running status.succeeded status.failed
        status.terminating status.unknown status.version status.retryCount status.runningDuration
        status.controlledResources status.conditions
    """,
    QUEUE: """
        spec.weight spec.capability spec.deserved spec.guarantee.resource spec.reclaimable spec.priority spec.parent
        spec.dequeueStrategy spec.type spec.extendClusters[].name spec.extendClusters[].weight
        spec.extendClusters[].capacity spec.affinity.nodeGroupAffinity.requiredDuringSchedulingIgnoredDuringExecution
        spec.affinity.nodeGroupAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution
        status.state status.unknown status.pending status.running status.inqueue status.completed
        status.reservation.nodes status.reservation.resource status.allocated
    """,
}
"""The fields of Volcano's kinds in release 1.14."""


@pytest.mark.parametrize("kind", RELEASE)
def test_n2_every_field_of_the_release_is_in_the_schema(kind: str) -> None:
    known = {path.partition(":")[2] for path in field_paths(ours(kind))}
    assert set(RELEASE[kind].split()) - known == set()


def theirs(**spec: Any) -> Obj:
    """Another project's PodGroup: an older version, a field that we do not know, fewer fields than ours."""
    fields = {"minMember": {"type": "integer", "format": "int32"}, "novel": {"type": "string"}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields, "required": ["novel"]}}}
    old = {"name": "v1alpha1", "served": False, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}
    new = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {},
    }
    columns = [{"name": "STATUS", "type": "string", "jsonPath": ".status.phase"}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "podgroups.scheduling.volcano.sh",
            "uid": "1",
            "resourceVersion": "7",
            "annotations": {"helm.sh/chart": "volcano", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "spec": {
            "group": "scheduling.volcano.sh",
            "names": {"kind": "PodGroup", "plural": "podgroups", "shortNames": ["pg"]},
            "scope": "Namespaced",
            "versions": [old, new | {"additionalPrinterColumns": columns}],
            **spec,
        },
        "status": {"storedVersions": ["v1beta1"]},
    }


def test_v1_a_definition_that_exists_is_merged_and_not_narrowed() -> None:
    existing = theirs()
    before = copy.deepcopy(existing)
    merged = merge(ours(POD_GROUP), existing)
    assert existing == before
    found = merged.definition
    assert set(field_paths(existing)) <= set(field_paths(found))
    assert {f"v1beta1:{path}" for path in RELEASE[POD_GROUP].split()} <= set(field_paths(found))
    version = found["spec"]["versions"][1]
    assert version["additionalPrinterColumns"] == existing["spec"]["versions"][1]["additionalPrinterColumns"]
    assert version["subresources"] == {}
    schema = version["schema"]["openAPIV3Schema"]
    assert schema["properties"]["spec"]["required"] == ["novel"]
    assert schema["properties"]["spec"]["properties"]["minMember"] == {"type": "integer", "format": "int32"}
    assert list(structural_faults(schema)) == []
    assert found["metadata"] == {"name": "podgroups.scheduling.volcano.sh", "annotations": {"helm.sh/chart": "volcano"}}
    assert "status" not in found
    assert "spec.subGroupPolicy" in merged.added
    assert "merged" in merged.text


def test_v1_a_definition_that_lacks_nothing_is_left_as_it_is() -> None:
    again = merge(ours(POD_GROUP), merge(ours(POD_GROUP), theirs()).definition)
    assert again.added == ()
    assert "left as it is" in again.text


def test_v1_a_version_that_is_missing_is_added_and_not_stored() -> None:
    existing = theirs()
    existing["spec"]["versions"] = existing["spec"]["versions"][:1]
    merged = merge(ours(POD_GROUP), existing)
    assert merged.added == ("version v1beta1",)
    assert [version["storage"] for version in merged.definition["spec"]["versions"]] == [False, False]


def applied(existing: Obj) -> dict[str, Obj]:
    objects = manifests(Settings(""), [existing])
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == "CustomResourceDefinition"}


def test_v1_an_earlier_definition_of_ours_is_replaced() -> None:
    earlier = copy.deepcopy(ours(POD_GROUP))
    del earlier["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["minMember"]
    assert merged_definitions([earlier]) == []
    assert applied(earlier)["podgroups.scheduling.volcano.sh"]["spec"] == ours(POD_GROUP)["spec"]


def test_v1_what_another_project_added_to_ours_is_kept() -> None:
    """Volcano was installed over us: its manifest leaves our label on the definition."""
    earlier = theirs()
    earlier["metadata"]["labels"] = {OWN_LABEL: "enbloc"}
    found = applied(earlier)["podgroups.scheduling.volcano.sh"]
    assert set(field_paths(earlier)) | set(field_paths(ours(POD_GROUP))) == set(field_paths(found))
    (one,) = merged_definitions([earlier])
    assert "from an earlier enbloc: replaced, " in one.text


def test_v1_only_the_definitions_of_others_are_named() -> None:
    (one,) = merged_definitions([theirs(), {"metadata": {"name": "other.example.com"}, "spec": {}}])
    assert one.text.startswith("podgroups.scheduling.volcano.sh exists: merged, ")
