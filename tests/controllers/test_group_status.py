"""The status of PodGroups: only what says something is written."""

from __future__ import annotations

from enbloc.api.writes import Patch, WatchEvent
from enbloc.controllers.group_status import GroupStatus
from enbloc.controllers.volcano import VolcanoGroups
from support import manifests as m


def group(**status: object) -> m.Obj:
    metadata = {"name": "g", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    return {
        "apiVersion": m.SCHEDULING,
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"minMember": 1},
        "status": status,
    }


def test_counts_of_nothing_are_not_written_to_a_new_group() -> None:
    controller = GroupStatus(VolcanoGroups())
    controller.observe(WatchEvent("ADDED", "PodGroup.scheduling.volcano.sh", group(phase="Inqueue")))
    assert controller.reconcile(0) == []


def test_a_count_that_is_there_is_corrected() -> None:
    controller = GroupStatus(VolcanoGroups())
    controller.observe(WatchEvent("ADDED", "PodGroup.scheduling.volcano.sh", group(phase="Inqueue", running=3)))
    (patch,) = controller.reconcile(0)
    assert isinstance(patch, Patch)
    assert patch.patch["status"]["running"] == 0
