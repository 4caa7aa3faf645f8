"""N5: one preset decides which scheduler names are ours and which rules are relaxed, in every command alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from enbloc.cli.main import cli
from enbloc.config import parse, render
from support import manifests as m
from support.answers import Answer
from support.simulation import lint, simulate

NAMES = ("volcano", "koord-scheduler", "scheduler-plugins-scheduler", "kai-scheduler", "yunikorn", "default-scheduler")


def master_and_workers(scheduler: str) -> dict[str, Any]:
    """As Volcano's own examples: a total minimum over several roles without minima."""
    return m.job("j", m.role("master", 1), m.role("worker", 2), minimum=1, schedulerName=scheduler)


@pytest.mark.parametrize("name", NAMES)
def test_n5_a_simulation_schedules_pods_of_every_preset_by_default(name: str) -> None:
    assert simulate(m.node("n"), m.pod("p", scheduler=name)).times() == [0.0]


def test_n5_a_pod_without_a_scheduler_name_runs_in_a_simulation() -> None:
    plain = m.pod("p")
    del plain["spec"]["schedulerName"]
    assert simulate(m.node("n"), plain).times() == [0.0]


@pytest.mark.parametrize("name", NAMES)
def test_n5_with_a_preset_its_names_alone_are_added(name: str) -> None:
    answer = simulate(m.node("n"), m.pod("p", scheduler=name), m.pod("own"), config={"compat": ["koordinator"]})
    assert set(answer.bound()) == ({"own", "p"} if name == "koord-scheduler" else {"own"})


def test_n5_volcano_takes_any_minimum_up_to_the_replicas() -> None:
    job = master_and_workers("volcano")
    assert "minAvailable" in simulate(m.node("n"), job).rejected("j")
    answer = simulate(m.node("n"), job, config={"compat": ["volcano"]})
    assert answer.times("j") == [0.0] * 3
    assert lint(job, config={"compat": ["volcano"]}).faults == []
    assert lint(job).faults


def foreign_events(answer: Answer) -> list[str]:
    return [event["message"] for event in answer.all("Event") if event["reason"] == "OtherScheduler"]


@pytest.mark.parametrize("make", [m.job, m.queue_job])
def test_n5_a_job_of_another_scheduler_is_left_alone_with_an_event(make: Any) -> None:
    job = make("j", m.role("w", 2))
    job["spec"]["schedulerName"] = "another"
    answer = simulate(m.node("n"), job, m.restart("5s"), until="10s")
    assert not answer.pods()
    assert not answer.all("PodGroup")
    assert not answer.all("SchedulingSpec")
    said = foreign_events(answer)
    assert said
    assert said[0].startswith("spec.schedulerName is another, ours are default-scheduler, enbloc, kai-scheduler")


def test_n5_a_job_of_another_scheduler_is_not_reviewed() -> None:
    job = master_and_workers("another")
    assert not simulate(m.node("n"), job).lines("rejected")
    linted = lint(job)
    assert linted.faults == []
    first, second = [str(one).split(": ", 1)[1] for one in linted.warnings]
    way_out = "use enbloc, or add it to schedulerNames in the config"
    assert first == f"spec.schedulerName: 'another' is not ours: no pods are created; {way_out}"
    assert second.startswith("spec.minAvailable: 1 is not the sum of the roles' replicas, 3")
    assert second.endswith("(refused once spec.schedulerName is enbloc)")


def test_n5_what_the_definition_checks_is_checked_of_every_job() -> None:
    """An API server refuses these before any webhook is asked, whatever the scheduler."""
    role = {**m.role("w", 1, 2), "policies": [{"event": "PodFailled", "action": "RestartJob"}]}
    job = m.job("j", role, m.role("w", -1), schedulerName="another", maxRetry=-1)
    fields = [
        "spec.maxRetry",
        "spec.tasks[0].minAvailable",
        "spec.tasks[0].policies[0].event",
        "spec.tasks[1].name",
        "spec.tasks[1].replicas",
    ]
    linted = lint(job)
    assert [one.field for one in linted.faults] == fields
    rejected = simulate(m.node("n"), job).rejected("j")
    assert all(field in rejected for field in fields)


def test_n5_the_printed_config_reads_back_as_the_same() -> None:
    for data in ({}, {"compat": ["volcano", "kai"]}, {"compat": ["yunikorn"], "schedulerNames": ["mine"]}):
        found = parse(data)
        assert parse(yaml.safe_load(render(found))) == found


def test_n5_no_gang_is_announced_of_an_object_without_effect(tmp_path: Path) -> None:
    """No controller here makes pods of a JobSet: that is said, and no gang of its pods."""
    file = tmp_path / "set.yaml"
    file.write_text("{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: set}, spec: {}}")
    for command in ("lint", "sim"):
        said = CliRunner().invoke(cli, [command, str(file)]).output
        assert "no controller here acts on JobSet" in said
        assert "are a gang here" not in said


def test_n5_lint_lists_what_it_takes_to_exist() -> None:
    """A cluster refuses a job whose queue or class is missing; files say nothing about a cluster."""
    job = m.job("j", m.role("w", 1), queue="team", priorityClassName="high")
    linted = lint(job)
    assert linted.faults == []
    assert linted.assumed == ["PriorityClass high", "queue team"]
    others = [m.queue("teams"), m.priority_class("higher", 1)]
    linted = lint(job, others)
    said = [one.message for one in linted.faults]
    assert said == [
        "queue 'team' does not exist; did you mean teams?",
        "priority class 'high' does not exist; did you mean higher?",
    ]
    assert linted.assumed == []
    [rejected] = simulate(m.node("n"), others, job).lines("rejected")
    assert all(text in rejected["message"] for text in said)


def test_n5_a_plugin_of_volcano_without_effect_is_warned_of_and_one_that_is_not_known_refused() -> None:
    job = m.job("j", m.role("w", 1), plugins={"ringsconfigmap": [], "svcc": []})
    linted = lint(job)
    [fault] = linted.faults
    assert fault.message.endswith("did you mean svc?")
    [warning] = linted.warnings
    assert (warning.field, "has no effect" in warning.message) == ("spec.plugins.ringsconfigmap", True)


def test_n5_a_version_that_no_api_server_serves_is_warned_of() -> None:
    """A cluster refuses it; in files it is read as the kind that it names."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1beta1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "b"},
    }
    [warning] = lint(binding).warnings
    assert warning.field == "apiVersion"
    assert warning.message.endswith("is not served for ClusterRoleBinding: use rbac.authorization.k8s.io/v1")
    assert not lint({**binding, "apiVersion": "rbac.authorization.k8s.io/v1"}).warnings


def test_n5_what_is_created_before_the_queue_that_it_names_is_warned_of() -> None:
    """`lint` reads all files at once; a cluster creates one object after the other, and refuses."""
    job, queue = m.job("j", m.role("w", 1), queue="child"), m.queue("child", parent="top")
    fields = [one.field for one in lint(job, queue, m.queue("top")).warnings]
    assert fields == ["spec.queue", "spec.parent"]
    assert simulate(m.node("n"), job, queue, m.queue("top")).rejected("j")
    assert not lint(m.queue("top"), queue, job).warnings
    assert simulate(m.node("n"), m.queue("top"), queue, job).bound()
    later = m.job("j", m.role("w", 1), queue="child", at="1s")
    assert not lint(later, m.queue("top"), queue).warnings


def test_n5_lint_reads_the_queues_that_pods_name() -> None:
    pod = m.pod("p", queue="team")
    assert lint(pod).assumed == ["queue team"]
    [warning] = lint(m.queue("teams"), pod).warnings
    assert warning.field == "metadata.annotations[scheduling.volcano.sh/queue-name]"
    assert warning.message == "its pods wait: queue 'team' does not exist; did you mean teams?"
    assert "queue team does not exist" in simulate(m.node("n"), m.queue("teams"), pod).why("default/p")
