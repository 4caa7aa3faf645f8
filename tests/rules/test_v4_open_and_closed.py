"""V4: queues that are open, closed, missing or deleted, and who may join them."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj
from queue_stories import PLAIN, job, linted, node, patch, play, pod, podgroup, queue, role, small, step


def test_v4_a_job_for_a_queue_that_is_missing_is_refused() -> None:
    told = play(node("n"), small("j", queue="nowhere"), podgroup("g", 1, "nowhere"))
    assert "nowhere" in told.rejected("j")
    assert "spec.queue" in told.rejected("j")
    assert "nowhere" in told.rejected("g")
    assert not told.bound()
    assert not any(one["kind"] == "Job" for one in told.objects)


def test_v4_a_queue_that_comes_later_takes_jobs_from_then_on() -> None:
    told = play(
        node("n"), small("early", queue="q"), queue("q", at="5s"), small("late", queue="q", at="6s"), config=PLAIN
    )
    assert "does not exist" in told.rejected("early")
    assert told.bound() == {"late-w-0": 6.0}


def test_v4_closed_in_a_file() -> None:
    told = play(node("n"), queue("q", state="Closed"), small("j", queue="q"))
    assert "closed" in told.rejected("j").lower()
    assert "'q'" in told.rejected("j")
    assert told.obj("Queue", "q")["status"]["state"] == "Closed"


def test_v4_closed_by_a_patch_and_opened_again() -> None:
    """What is in it runs on, also what waits there already; what comes while it is closed is refused."""
    told = play(
        node("n", 2),
        queue("q"),
        small("runs", 2, "q", run="30s"),
        small("waits", 2, "q", at="1s", run="30s"),
        patch("10s", "Queue", "q", status={"state": "Closed"}),
        small("refused", queue="q", at="11s"),
        patch("50s", "Queue", "q", status={"state": "Open"}),
        small("again", 2, "q", at="51s", run="5s"),
    )
    assert told.bound() == {"runs-w-0": 0.0, "waits-w-0": 30.0, "again-w-0": 60.0}
    assert "closed" in told.rejected("refused")
    assert told.lines("rejected", "refused")[0].t == 11.0
    assert told.phase("runs") == told.phase("waits") == "Completed"
    assert told.obj("Queue", "q")["status"]["state"] == "Open"


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
    told = play(
        node("n"),
        queue("q"),
        command("5s", "CloseQueue", "q"),
        small("refused", queue="q", at="6s"),
        command("10s", "OpenQueue", "q"),
        small("taken", queue="q", at="11s"),
        command("12s", "CloseQueue", "nowhere"),
    )
    assert "closed" in told.rejected("refused")
    assert told.bound() == {"taken-w-0": 11.0}
    assert not any(one["kind"] == "Command" for one in told.objects), "a Command that was obeyed is gone"


def test_v4_a_closed_queue_replaces_what_a_running_job_loses() -> None:
    told = play(
        node("n", 4),
        queue("q"),
        job("j", role("w", 2), queue="q"),
        patch("10s", "Queue", "q", status={"state": "Closed"}),
        step("20s", "delete", "Pod", "j-w-1"),
    )
    assert [line.t for line in told.lines("bound", "j-w-1")] == [0.0, 20.0]


def test_v4_a_state_nobody_knows_is_refused() -> None:
    assert "Ajar" in play(node("n"), queue("q", state="Ajar")).rejected("q")


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
    told = play(node("n"), queue("q", **spec))
    for word in words:
        assert word in told.rejected("q")
    faults = linted(queue("q", **spec)).faults
    assert len(faults) == 1
    assert faults[0].field == words[0]


def test_v4_the_default_queue_may_not_be_deleted_nor_one_with_children() -> None:
    told = play(
        node("n"),
        [queue("p"), queue("c", parent="p")],
        step("1s", "delete", "Queue", "default"),
        step("1s", "delete", "Queue", "p"),
    )
    assert "default" in told.rejected("default")
    assert "children" in told.rejected("p")


def test_v5_a_queue_that_disappears_under_its_pods() -> None:
    """What runs runs on, what waits says so; when the queue comes back, it goes on."""
    told = play(
        node("n", 2),
        queue("q", delete_at="10s"),
        small("runs", 2, "q", run="30s"),
        small("waits", 2, "q", at="1s", run="30s"),
        small("other", 1, at="40s", run="5s"),
        until="60s",
    )
    assert told.bound() == {"runs-w-0": 0.0, "other-w-0": 40.0}
    assert told.phase("runs") == "Completed"
    assert "queue q does not exist" in told.pending["default/waits"]["message"]

    told = play(
        node("n", 2),
        queue("q", delete_at="10s"),
        queue("q", at="20s"),
        small("waits", 4, "q", at="1s"),
        node("m", 4, at="15s"),
    )
    assert told.bound() == {"waits-w-0": 20.0}


def test_v4_a_bare_pod_names_its_queue() -> None:
    told = play(
        node("n", 4),
        queue("q", capability={"cpu": "1"}),
        pod("p0", queue="q"),
        pod("p1", queue="q"),
        pod("lost", queue="nowhere"),
    )
    assert list(told.bound()) == ["p0"]
    assert "queue q" in told.pending["default/p1"]["message"]
    assert "nowhere" in told.pending["default/lost"]["message"]
