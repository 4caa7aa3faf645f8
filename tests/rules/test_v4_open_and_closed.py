"""V4: queues that are open, closed, missing or deleted, and who may join them."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.simulation import NO_EVICTIONS, lint, simulate


def test_v4_a_job_for_a_queue_that_is_missing_is_refused() -> None:
    answer = simulate(m.node("n"), m.one_pod_job("j", queue="nowhere"), m.podgroup("g", 1, queue="nowhere"))
    assert "nowhere" in answer.rejected("j")
    assert "spec.queue" in answer.rejected("j")
    assert "nowhere" in answer.rejected("g")
    assert not answer.first_bound()
    assert not any(one["kind"] == "Job" for one in answer.objects)


def test_v4_a_queue_that_comes_later_takes_jobs_from_then_on() -> None:
    answer = simulate(
        m.node("n"),
        m.one_pod_job("early", queue="q"),
        m.queue("q", at="5s"),
        m.one_pod_job("late", queue="q", at="6s"),
        config=NO_EVICTIONS,
    )
    assert "does not exist" in answer.rejected("early")
    assert answer.first_bound() == {"late-w-0": 6.0}


def test_v4_closed_in_a_file() -> None:
    answer = simulate(m.node("n"), m.queue("q", state="Closed"), m.one_pod_job("j", queue="q"))
    assert "closed" in answer.rejected("j").lower()
    assert "'q'" in answer.rejected("j")
    assert answer.obj("Queue", "q")["status"]["state"] == "Closed"


def test_v4_closed_by_a_patch_and_opened_again() -> None:
    """What is in it runs on, also what waits there already; what comes while it is closed is refused."""
    answer = simulate(
        m.node("n", 2),
        m.queue("q"),
        m.one_pod_job("runs", 2, queue="q", run_time="30s"),
        m.one_pod_job("waits", 2, queue="q", at="1s", run_time="30s"),
        m.patch("10s", "Queue", "q", status={"state": "Closed"}),
        m.one_pod_job("refused", queue="q", at="11s"),
        m.patch("50s", "Queue", "q", status={"state": "Open"}),
        m.one_pod_job("again", 2, queue="q", at="51s", run_time="5s"),
    )
    assert answer.first_bound() == {"runs-w-0": 0.0, "waits-w-0": 30.0, "again-w-0": 60.0}
    assert "closed" in answer.rejected("refused")
    assert answer.lines("rejected", "refused")[0]["t"] == 11.0
    assert answer.phase("runs") == answer.phase("waits") == "Completed"
    assert answer.obj("Queue", "q")["status"]["state"] == "Open"


def command(at: str, action: str, name: str) -> Obj:
    metadata = {"name": f"c{at}", "namespace": "default", "annotations": {"sim.enbloc.dev/at": at}}
    target = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": name}
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": metadata,
        "action": action,
        "target": target,
    }


def test_v4_closed_and_opened_by_commands() -> None:
    answer = simulate(
        m.node("n"),
        m.queue("q"),
        command("5s", "CloseQueue", "q"),
        m.one_pod_job("refused", queue="q", at="6s"),
        command("10s", "OpenQueue", "q"),
        m.one_pod_job("taken", queue="q", at="11s"),
        command("12s", "CloseQueue", "nowhere"),
    )
    assert "closed" in answer.rejected("refused")
    assert answer.first_bound() == {"taken-w-0": 11.0}
    assert not any(one["kind"] == "Command" for one in answer.objects), "a Command that was obeyed is gone"


def test_v4_a_closed_queue_replaces_what_a_running_job_loses() -> None:
    answer = simulate(
        m.node("n", 4),
        m.queue("q"),
        m.job("j", m.role("w", 2), queue="q"),
        m.patch("10s", "Queue", "q", status={"state": "Closed"}),
        m.step("20s", "delete", "Pod", "j-w-1"),
    )
    assert [line["t"] for line in answer.lines("bound", "j-w-1")] == [0.0, 20.0]


def test_v4_an_unknown_state_is_refused() -> None:
    assert "Ajar" in simulate(m.node("n"), m.queue("q", state="Ajar")).rejected("q")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"weight": 0}, ("spec.weight", "0")),
        ({"weight": -3}, ("spec.weight", "-3")),
        ({"capability": {"cpu": "-1"}}, ("spec.capability.cpu", "-1")),
        ({"capability": {"cpu": "2"}, "deserved": {"cpu": "3"}}, ("spec.deserved.cpu", "3", "2")),
        ({"deserved": {"cpu": "2"}, "guarantee": {"cpu": "3"}}, ("spec.guarantee.resource.cpu", "3", "2")),
        ({"dequeueStrategy": "lifo"}, ("spec.dequeueStrategy", "lifo", "fifo")),
    ],
)
def test_v4_bad_queues_are_refused_with_field_and_values(spec: dict[str, Any], words: tuple[str, ...]) -> None:
    answer = simulate(m.node("n"), m.queue("q", **spec))
    for word in words:
        assert word in answer.rejected("q")
    faults = lint(m.queue("q", **spec)).faults
    assert len(faults) == 1
    assert faults[0].field == words[0]


def test_v4_the_default_queue_may_not_be_deleted_nor_one_with_children() -> None:
    answer = simulate(
        m.node("n"),
        [m.queue("p"), m.queue("c", parent="p")],
        m.step("1s", "delete", "Queue", "default"),
        m.step("1s", "delete", "Queue", "p"),
    )
    assert "default" in answer.rejected("default")
    assert "children" in answer.rejected("p")


def test_v5_a_queue_that_disappears_under_its_pods() -> None:
    """What runs runs on, what waits says so; when the queue comes back, it goes on."""
    answer = simulate(
        m.node("n", 2),
        m.queue("q", delete_at="10s"),
        m.one_pod_job("runs", 2, queue="q", run_time="30s"),
        m.one_pod_job("waits", 2, queue="q", at="1s", run_time="30s"),
        m.one_pod_job("other", 1, at="40s", run_time="5s"),
        until="60s",
    )
    assert answer.first_bound() == {"runs-w-0": 0.0, "other-w-0": 40.0}
    assert answer.phase("runs") == "Completed"
    assert "queue q does not exist" in answer.pending("default/waits")["message"]

    answer = simulate(
        m.node("n", 2),
        m.queue("q", delete_at="10s"),
        m.queue("q", at="20s"),
        m.one_pod_job("waits", 4, queue="q", at="1s"),
        m.node("m", 4, at="15s"),
    )
    assert answer.first_bound() == {"waits-w-0": 20.0}


def test_v4_a_bare_pod_names_its_queue() -> None:
    answer = simulate(
        m.node("n", 4),
        m.queue("q", capability={"cpu": "1"}),
        m.pod("p0", queue="q"),
        m.pod("p1", queue="q"),
        m.pod("lost", queue="nowhere"),
    )
    assert list(answer.first_bound()) == ["p0"]
    assert "queue q" in answer.pending("default/p1")["message"]
    assert "nowhere" in answer.pending("default/lost")["message"]
