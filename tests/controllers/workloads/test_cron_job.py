"""CronJobs: schedules as cron reads them, and a Job at each instant."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from enbloc.api.meta import Obj
from enbloc.api.workloads import CRON_JOB, JOB
from enbloc.api.writes import Refused
from enbloc.config import parse
from enbloc.controllers.workloads.cron import Schedule
from enbloc.scenario.scenario import read_scenario
from enbloc.sim import simulation
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND
from support import manifests as m
from support.simulation import documents
from support.workload_cluster import WorkloadCluster, job


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


NEXT = {
    "every minute": ("* * * * *", "2026-01-01 10:00:00", "2026-01-01 10:01:00"),
    "within a minute": ("* * * * *", "2026-01-01 10:00:30", "2026-01-01 10:01:00"),
    "steps": ("*/20 * * * *", "2026-01-01 10:41:00", "2026-01-01 11:00:00"),
    "range and list": ("15,45 9-17 * * *", "2026-01-01 17:45:00", "2026-01-02 09:15:00"),
    "weekday by name": ("0 8 * * mon", "2026-01-01 00:00:00", "2026-01-05 08:00:00"),
    "7 is Sunday": ("0 8 * * 7", "2026-01-01 00:00:00", "2026-01-04 08:00:00"),
    "either of two days": ("0 0 13 * fri", "2026-01-03 00:00:00", "2026-01-09 00:00:00"),
    "leap day": ("0 0 29 2 *", "2026-01-01 00:00:00", "2028-02-29 00:00:00"),
    "macro": ("@monthly", "2026-01-01 00:00:00", "2026-02-01 00:00:00"),
}


@pytest.mark.parametrize(("text", "after", "expected"), NEXT.values(), ids=NEXT.keys())
def test_the_next_instant_of_a_schedule(text: str, after: str, expected: str) -> None:
    assert Schedule(text).next_after(at(after)) == at(expected)


def test_a_time_zone_counts_and_an_hour_that_the_clocks_skip_does_not_come() -> None:
    berlin = Schedule("30 2 * * *", "Europe/Berlin")
    assert berlin.next_after(at("2026-01-01 00:00:00")) == at("2026-01-01 01:30:00")
    assert berlin.next_after(at("2026-03-28 12:00:00")) == at("2026-03-30 00:30:00")


def test_31_february_never_comes() -> None:
    assert Schedule("0 0 31 2 *").next_after(at("2026-01-01 00:00:00")) is None


@pytest.mark.parametrize("text", ["", "* * * *", "60 * * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *", "x * * * *"])
def test_a_bad_schedule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Schedule(text)
    with pytest.raises(Refused, match=r"spec\.schedule"):
        WorkloadCluster(nodes=0).create(cron_job("tick", text))


def cron_job(name: str, schedule: str, run_time: str = "10s", exit_code: str = "0", **spec: Any) -> Obj:
    made = job("x", run_time, exit_code, backoffLimit=0)["spec"]
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": made}, **spec},
    }


def jobs(cluster: WorkloadCluster) -> list[str]:
    return [one["metadata"]["name"] for one in cluster.owned(JOB, "tick")]


def test_a_job_is_created_at_each_instant_and_old_ones_are_deleted() -> None:
    cluster = WorkloadCluster()
    cluster.create(cron_job("tick", "* * * * *"))
    assert jobs(cluster) == []
    cluster.advance(60)
    minute = cluster.now_ns // SECOND // 60
    assert jobs(cluster) == [f"tick-{minute}"]
    assert [one["name"] for one in cluster.status(CRON_JOB, "tick")["active"]] == [f"tick-{minute}"]
    cluster.advance(5 * 60)
    assert jobs(cluster) == [f"tick-{minute + number}" for number in (2, 3, 4, 5)]
    assert cluster.status(CRON_JOB, "tick")["lastSuccessfulTime"]


@pytest.mark.parametrize(("policy", "left"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
def test_the_concurrency_policy_decides_about_jobs_that_still_run(policy: str, left: int) -> None:
    cluster = WorkloadCluster()
    cluster.create(cron_job("tick", "* * * * *", run_time="1000s", concurrencyPolicy=policy))
    cluster.advance(60)
    first = jobs(cluster)
    cluster.advance(120)
    assert len(jobs(cluster)) == left
    assert (first[0] in jobs(cluster)) == (policy != "Replace")


def test_a_suspended_one_creates_nothing() -> None:
    cluster = WorkloadCluster()
    cluster.create(cron_job("tick", "* * * * *", suspend=True))
    cluster.advance(300)
    assert jobs(cluster) == []


def test_after_a_pause_the_latest_instant_counts_unless_it_is_too_late() -> None:
    for deadline, expected in ((None, 1), (30, 0)):
        cluster = WorkloadCluster()
        late = {} if deadline is None else {"startingDeadlineSeconds": deadline}
        cluster.create(cron_job("tick", "0 * * * *", suspend=True, **late))
        cluster.advance(5 * 3600)
        cluster.advance(-cluster.now_ns // SECOND % 3600 + 120)  # two minutes past the hour
        cluster.patch(CRON_JOB, "tick", {"spec": {"suspend": False}})
        assert len(jobs(cluster)) == expected


def test_a_new_controller_creates_no_job_twice() -> None:
    cluster = WorkloadCluster()
    cluster.create(cron_job("tick", "* * * * *"))
    cluster.advance(60)
    before = jobs(cluster)
    cluster.restart()
    assert jobs(cluster) == before


def test_a_simulation_without_an_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "MOST_RESTARTS", 20)
    result = Simulation(read_scenario(documents(m.node("n", 4), cron_job("tick", "* * * * *"))), parse(None)).run()
    assert result.ended == "cut-off"
    assert "Job of CronJob default/tick was created 21 times" in result.reason
    assert "--until" in result.reason
