"""States of gangs: what a user sees of a gang that failed, crashes or was preempted, and queues that sum up a tree."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.config import parse
from enbloc.inspect.gangs import Gang
from enbloc.inspect.overview import KINDS, Overview, explain, queues_json, read_overview
from enbloc.inspect.tables import gang_cells
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND
from support import manifests as m
from support.simulation import documents


def overview_of(*objects: Any, at: int) -> Overview:
    simulation = Simulation(read_scenario(documents(*objects)), parse(None))
    simulation.run(at * SECOND)
    return read_overview({kind: simulation._store.list(kind)[0] for kind in KINDS})


def gang_of(*objects: Any, at: int, name: str = "default/j") -> Gang:
    return next(gang for gang in overview_of(*objects, at=at).gangs if gang.gang == name)


def test_m4_a_gang_runs_once_every_role_has_its_minimum() -> None:
    workers = [m.pod(f"w-{index}", group="j", role="worker", nodeName="n1") for index in range(2)]
    gang = m.podgroup("j", 2, roles={"worker": 1, "ps": 1})
    objects = [m.node("n1"), gang, *workers, m.pod("ps-0", 99, group="j", role="ps")]
    assert gang_of(*objects, at=10).state == "Waiting"


def test_s3_the_priority_is_the_one_that_counts() -> None:
    objects = [m.node("n1"), m.priority_class("high", 10), *m.gang("j", 1, group_priority="high")]
    simulation = Simulation(read_scenario(documents(*objects)), parse(None))
    simulation.run(10 * SECOND)
    lists = {kind: simulation.store.list(kind)[0] for kind in KINDS}
    isolated = parse({"tenancy": "isolated"})
    assert [read_overview(lists, config).gangs[0].priority for config in (None, isolated)] == [10, 0]


def test_failed_job_says_its_reason_and_exit_codes() -> None:
    fails = m.job("j", m.role("w", 2, run_time="5s", exit_code="3", restartPolicy="Never"), maxRetry=1)
    gang = gang_of(m.node("n1"), fails, at=60)
    assert gang.state == "Failed"
    assert "exit code 3" in gang.message
    assert gang.exit_codes == {"exit code 3": 2}
    assert gang_cells(gang, 0)[-1] == gang.message


def test_job_that_was_terminated_failed_although_its_pods_are_gone() -> None:
    job = m.job("j", m.role("w", 1, run_time="50s"))
    gang = gang_of(m.node("n1"), job, m.command("c", "TerminateJob", "10s"), at=30)
    assert gang.state == "Failed"
    assert "Terminated" in gang.message


def test_finished_job() -> None:
    gang = gang_of(m.node("n1"), m.job("j", m.role("w", 2, run_time="5s", restartPolicy="Never")), at=60)
    assert (gang.state, gang.message, gang.exit_codes) == ("Finished", "", {})


def test_crash_loop() -> None:
    crashes = m.job("j", m.role("w", 2, run_time="1s", exit_code="137", restartPolicy="Always"))
    overview = overview_of(m.node("n1"), crashes, at=40)
    (gang,) = overview.gangs
    assert gang.state == "CrashLoop"
    assert "2 of 2 pods crash and are restarted" in gang.message
    assert "exit code 137" in gang.message
    default = next(queue for queue in overview.queues if queue.queue == "default")
    assert (default.running, default.waiting) == (1, 0)  # it has its nodes
    explanation = explain(overview, "default/j")
    assert explanation is not None
    assert "crash and are restarted" in explanation.sentence


def test_preempted_gang_says_for_whom_until_it_runs_again() -> None:
    objects = [
        m.node("n1"),
        m.priority_class("high", 10),
        m.job("j", m.role("w", 2, cpu=2)),
        m.job("high", m.role("w", 1, cpu=4, run_time="30s", restartPolicy="Never"), priority="high", at="10s"),
    ]
    gang = gang_of(*objects, at=20)
    assert gang.state == "Preempted"
    told = "it was preempted at 2026-01-01T00:00:10Z: makes room for default/high"
    assert gang.message.endswith(f"; {told}")
    explanation = explain(overview_of(*objects, at=20), "default/j")
    assert explanation is not None
    assert explanation.sentence == f"It waits again: {gang.message}."
    assert gang_of(*objects, at=60).state == "Running"


BELOW = "it is below its minimum of 2: "
OF_A_JOB = f"{BELOW}Job j recreates pods that are deleted, and failed ones only by a policy for PodFailed"


@pytest.mark.parametrize(
    "objects, message",
    [
        (
            [m.job("j", m.role("w", 1), m.role("bad", 1, run_time="5s", exit_code="3", restartPolicy="Never"))],
            f"1 of 2 pods failed: j-bad-0 (exit code 3); {OF_A_JOB}",
        ),
        (  # above its minimum: the Job is as its author wanted it
            [m.job("j", m.role("w", 2, 2), m.role("bad", 1, 0, run_time="5s", exit_code="3", restartPolicy="Never"))],
            "1 of 3 pods failed: j-bad-0 (exit code 3)",
        ),
        (
            [*m.gang("j", 2), m.step("5s", "delete", "Pod", "j-1")],
            f"{BELOW}no controller owns its pods, so they are not recreated",
        ),
        (
            [*m.gang("j", 2), m.step("5s", "fail-pod", "Pod", "j-1")],
            f"1 of 2 pods failed: j-1 (exit code 1); {BELOW}no controller owns its pods, so they are not recreated",
        ),
    ],
    ids=["a Job's pod failed", "surplus failed", "a pod is gone", "a bare pod failed"],
)
def test_a_started_gang_says_which_pods_it_lost_and_what_comes_next(objects: list[Any], message: str) -> None:
    overview = overview_of(m.node("n1"), *objects, at=30)
    (gang,) = overview.gangs
    assert (gang.state, gang.message) == ("Running", message)
    explanation = explain(overview, "default/j")
    assert explanation is not None
    assert explanation.sentence.endswith(f". {message[0].upper()}{message[1:]}.")


def test_a_pod_of_a_started_gang_that_is_recreated_waits() -> None:
    """The Job's controller makes it anew at once: the gang waits for that pod, and for nothing else."""
    job = m.job("j", m.role("w", 2, cpu=2))
    other = m.pod("other", 2, at="5s", nodeName="n1")
    gang = gang_of(m.node("n1"), job, m.step("5s", "delete", "Pod", "j-w-1"), other, at=30)
    assert gang.pods == {"running": 1, "waiting": 1}
    assert (gang.state, gang.reason) == ("Waiting", "Unschedulable")


def test_a_job_whose_roles_have_no_replicas_says_so() -> None:
    overview = overview_of(m.node("n1"), m.job("j", m.role("w", 0), m.role("x", 0)), at=30)
    explanation = explain(overview, "default/j")
    assert explanation is not None
    assert explanation.sentence == "It waits: no pod is asked for: roles w, x have 0 replicas."


def test_queue_counts_what_is_in_the_queues_below_it() -> None:
    overview = overview_of(
        m.node("n1", cpu=8),
        m.queue("team"),
        m.queue("a", parent="team"),
        m.queue("b", parent="team"),
        m.job("one", m.role("w", 1, cpu=2), queue="a"),
        m.job("two", m.role("w", 1, cpu=3), queue="b"),
        m.job("big", m.role("w", 1, cpu=100), queue="b"),
        at=10,
    )
    rows = {queue["queue"]: queue for queue in queues_json(overview)}
    assert [(rows[name]["running"], rows[name]["waiting"]) for name in ("a", "b", "team", "root")] == [
        (1, 0),
        (1, 1),
        (2, 1),
        (2, 1),
    ]
    assert [rows[name]["used"]["cpu"] for name in ("a", "b", "team", "root")] == ["2", "3", "5", "5"]


def test_d2_a_job_that_runs_says_which_roles_come_later() -> None:
    server = m.role("server", 1, start_delay="60s")
    worker = m.role("worker", 2, depends_on={"name": ["server"]})
    before = overview_of(m.node("n1"), m.job("j", server, worker), at=30)
    explained = explain(before, "default/j")
    assert explained is not None
    later = "pods of role worker are created once server is running (dependsOn)"
    assert explained.sentence == f"It runs: 1 pod on n1 (1); its minimum is 1. {later[0].upper()}{later[1:]}."
    after = gang_of(m.node("n1"), m.job("j", server, worker), at=90)
    assert (after.message, after.pods) == ("", {"running": 3})
