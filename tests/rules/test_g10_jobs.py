"""G10: a Job and a QueueJob whose gang waits say why as a condition too, until it waits no more."""

from __future__ import annotations

import pytest

from enbloc.api import arbitrator, volcano
from enbloc.api.writes import Patch
from enbloc.controllers.wait_condition import other_conditions, wait_condition
from support import manifests as m
from support.answers import Answer
from support.live_cluster import LiveWorld, in_virtual_time
from support.manifests import Obj
from support.simulation import NO_ENQUEUE, NO_EVICTIONS, simulate

KINDS = ("Job", "QueueJob")


def submitted(kind: str, cpu: int = 2, **fields: str) -> Obj:
    """A job of three pods."""
    role = m.role("w", 3, cpu=cpu)
    return m.job("train", role, **fields) if kind == "Job" else m.queue_job("train", role, minimum=3, **fields)


def wait_conditions(answer: Answer, kind: str, name: str = "train") -> list[Obj]:
    conditions = answer.obj(kind, name)["status"].get("conditions") or []
    return [one for one in conditions if one.get("type") == "Unschedulable"]


def phases_passed(answer: Answer) -> list[str]:
    """Volcano's own entries in a Job's conditions."""
    return [one["status"] for one in answer.obj("Job", "train")["status"]["conditions"] if "type" not in one]


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_waits_says_why_with_numbers(kind: str) -> None:
    answer = simulate(m.node("n1", 4), m.node("n2", 1), submitted(kind), config=NO_EVICTIONS)
    (waits,) = wait_conditions(answer, kind)
    assert waits == {
        "type": "Unschedulable",
        "status": "True",
        "reason": answer.pending("default/train")["reason"],
        "message": answer.why("default/train"),
        "lastTransitionTime": waits["lastTransitionTime"],
    }
    assert waits["message"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_what_was_attempted(kind: str) -> None:
    answer = simulate(m.node("n1", 4), m.node("n2", 1), submitted(kind), config=NO_ENQUEUE)
    (waits,) = wait_conditions(answer, kind)
    assert waits["reason"] == "Unschedulable"
    assert "1 of 3 pods of role w does not fit: 0/2 nodes are available: 2 Insufficient cpu" in waits["message"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_withdrawn_when_the_gang_starts(kind: str) -> None:
    documents = m.node("n1", 4), submitted(kind), m.node("n2", 4, at="20s")
    assert wait_conditions(simulate(*documents, until="19s"), kind)
    answer = simulate(*documents)
    assert answer.obj(kind, "train")["status"]["running"] == 3
    assert wait_conditions(answer, kind) == []


@pytest.mark.parametrize("kind", KINDS)
def test_i5_a_restarted_scheduler_leaves_it_and_withdraws_it(kind: str) -> None:
    documents = m.node("n1", 4), submitted(kind), m.restart("10s"), m.node("n2", 4, at="20s")
    before, after = (wait_conditions(simulate(*documents, until=until), kind) for until in ("9s", "19s"))
    assert before == after != []
    assert wait_conditions(simulate(*documents), kind) == []


@pytest.mark.parametrize("kind", KINDS)
def test_i5_it_is_withdrawn_if_the_gang_started_just_before_a_restart(kind: str) -> None:
    answer = simulate(m.node("n1", 4), submitted(kind), m.node("n2", 4, at="20s"), m.restart("20s"))
    assert len(answer.bound("train")) == 3
    assert wait_conditions(answer, kind) == []


@pytest.mark.parametrize("kind", KINDS)
def test_another_reason_replaces_it(kind: str) -> None:
    cordon = m.patch("10s", "Node", "n1", spec={"unschedulable": True})
    documents = m.node("n1", 4), submitted(kind), cordon
    (waits,) = wait_conditions(simulate(*documents, config=NO_ENQUEUE), kind)
    assert "1 node(s) were unschedulable" in waits["message"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_costs_no_write_of_a_job_that_starts_at_once(kind: str) -> None:
    """And two of one that waits: on a cluster that answers late, as in `enbloc run`."""

    async def main() -> None:
        world = LiveWorld(m.node("n1", 4))
        await world.begin()
        first, second = submitted(kind, cpu=1), submitted(kind)
        second["metadata"]["name"] = "waits"
        world.store.create(first)
        await world.settle()
        assert len(world.bound()) == 3
        assert _said(world) == []
        world.store.create(second)
        await world.settle()
        world.store.create(m.node("n2", 8))
        await world.settle()
        assert len(world.bound()) == 6
        assert _said(world) == [("waits", True), ("waits", False)]
        await world.end()

    in_virtual_time(main)


def _said(world: LiveWorld) -> list[tuple[str, bool]]:
    """The writes to a job's status that are made for conditions alone, and whether the job says then that it waits."""
    return [
        (write.ref.name, any(one.get("type") == "Unschedulable" for one in write.patch["status"]["conditions"]))
        for write in world.cluster.writes
        if isinstance(write, Patch) and write.ref.kind in (volcano.JOB, arbitrator.QUEUE_JOB)
        if [*write.patch["status"]] == ["conditions"]
    ]


def test_v2_the_phases_that_a_job_passed_are_kept_beside_it() -> None:
    documents = m.node("n1", 4), submitted("Job"), m.node("n2", 4, at="20s")
    answer = simulate(*documents, until="19s")
    assert phases_passed(answer) == ["Pending"]
    assert answer.phase("train") == "Pending"
    assert phases_passed(simulate(*documents)) == ["Pending", "Running"]


def test_v2_a_job_that_was_ended_waits_for_nothing() -> None:
    abort = m.command("stop", "AbortJob", "10s", "train")
    answer = simulate(m.node("n1", 4), submitted("Job"), abort)
    assert answer.phase("train") == "Aborted"
    assert wait_conditions(answer, "Job") == []
    assert phases_passed(answer) == ["Pending", "Aborting", "Aborted"]


def test_what_others_wrote_into_the_conditions_is_kept() -> None:
    theirs = {"type": "Audited", "status": "True", "reason": "Theirs", "message": "kept"}
    for kind in KINDS:
        written = m.patch("5s", kind, "train", status={"conditions": [theirs]})
        documents = m.node("n1", 4), submitted(kind), written, m.node("n2", 4, at="20s")
        for until in ("19s", "60s"):
            answer = simulate(*documents, until=until)
            assert theirs in answer.obj(kind, "train")["status"]["conditions"]
            assert len(wait_conditions(answer, kind)) == (until == "19s")


def test_an_entry_that_another_definition_of_the_kind_pruned_is_not_added_again() -> None:
    """Volcano's own definition of a Job knows two fields of a condition, and drops the others."""
    pruned = {"status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    passed = {"status": "Pending", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    says = {"type": "Unschedulable", "reason": "Unschedulable", "message": "no room", **pruned}
    job, group = {"status": {"conditions": [passed, pruned]}}, {"status": {"conditions": [says]}}
    assert other_conditions(job) == [passed]
    assert wait_condition(job, group) == [says]
    refused = {**says, "reason": "FailedCreate", "message": "its PodGroup cannot be created"}
    assert wait_condition(job, None, refused["message"], 7) == [refused]
