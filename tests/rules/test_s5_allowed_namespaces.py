"""S5: a Queue says which namespaces may use it and the queues below it; at admission, and in the engine where an object
was not reviewed or the Queue changed later."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.allowed_namespaces import ALLOWED_NAMESPACE_SELECTOR, ALLOWED_NAMESPACES, allowed_namespaces_of
from enbloc.api.meta import Obj
from support import manifests as m
from support.simulation import simulate


def shut_queue(name: str, names: str | None = None, selector: str | None = None, **spec: Any) -> Obj:
    found = m.queue(name, **spec)
    found["metadata"]["annotations"] = {
        key: text
        for key, text in ((ALLOWED_NAMESPACES, names), (ALLOWED_NAMESPACE_SELECTOR, selector))
        if text is not None
    }
    return found


def namespace(name: str, **labels: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def jobs(queue: str, *namespaces: str) -> list[Obj]:
    return [m.one_pod_job(name, queue=queue, namespace=name) for name in namespaces]


def test_s5_a_job_of_another_namespace_is_refused() -> None:
    answer = simulate(m.node("n"), shut_queue("team-b", "b, c"), jobs("team-b", "a", "b", "c"))
    assert answer.first_bound() == {"b-w-0": 0.0, "c-w-0": 0.0}
    assert "spec.queue: queue 'team-b' does not allow namespace 'a'" in answer.rejected("a")


def test_s5_attack_t10_a_tenant_fills_the_queue_of_another_team() -> None:
    """Bare pods and PodGroups of namespace a that name team-b's queue do not take its capability."""
    queue = shut_queue("team-b", "b", capability={"cpu": "4"})
    pods = m.pods(4, "thief-", queue="team-b", namespace="a")
    answer = simulate(m.node("n", 8), queue, pods, m.job("j", m.role("w", 4), queue="team-b", namespace="b", at="1s"))
    assert sorted(answer.first_bound()) == [f"j-w-{index}" for index in range(4)]
    assert {answer.why(gang) for gang in answer.waiting()} == {
        "queue team-b does not allow namespace a: use another queue, or change its annotations"
    }


def test_s5_namespaces_are_selected_by_label() -> None:
    answer = simulate(
        m.node("n"),
        [namespace("a", team="red"), namespace("b", team="blue")],
        shut_queue("q", selector="team in (blue, green)"),
        jobs("q", "a", "b"),
    )
    assert answer.first_bound() == {"b-w-0": 0.0}


def test_s5_either_annotation_allows() -> None:
    answer = simulate(
        m.node("n"),
        [namespace("b", team="blue"), namespace("c")],
        shut_queue("q", "a", "team=blue"),
        jobs("q", "a", "b", "c"),
    )
    assert sorted(answer.first_bound()) == ["a-w-0", "b-w-0"]


def test_s5_queues_below_inherit() -> None:
    answer = simulate(m.node("n"), shut_queue("dept", "b"), m.queue("team", parent="dept"), jobs("team", "a", "b"))
    assert answer.first_bound() == {"b-w-0": 0.0}
    assert "queue 'team' does not allow namespace 'a': its ancestor 'dept' does not" in answer.rejected("a")


def test_s5_a_waiting_gang_follows_the_door_and_a_running_one_stays() -> None:
    """The door shuts at 5 s: what runs runs on; what waits says so, and starts when the door opens again."""
    door = m.patch("5s", "Queue", "q", metadata={"annotations": {ALLOWED_NAMESPACES: "b"}})
    opened = m.patch("20s", "Queue", "q", metadata={"annotations": {ALLOWED_NAMESPACES: None}})
    runs = m.one_pod_job("runs", cpu=4, queue="q", run_time="10s")
    waits = m.one_pod_job("waits", cpu=4, queue="q", at="1s", run_time="10s")
    answer = simulate(m.node("n"), m.queue("q"), runs, waits, door, opened)
    assert answer.first_bound() == {"runs-w-0": 0.0, "waits-w-0": 20.0}


def test_s5_a_label_of_the_namespace_opens_the_door() -> None:
    label = m.patch("5s", "Namespace", "a", metadata={"labels": {"team": "blue"}})
    pods = m.pods(1, "p", queue="q", namespace="a")
    answer = simulate(m.node("n"), [namespace("a")], shut_queue("q", selector="team=blue"), pods, label)
    assert answer.first_bound() == {"p0": 5.0}


@pytest.mark.parametrize(
    ("names", "selector", "message"),
    [
        ("a,B!", None, "'B!' is not the name of a namespace"),
        (None, "team ==== x", "'team ==== x' is not a label selector"),
    ],
)
def test_s5_bad_annotations_are_refused(names: str | None, selector: str | None, message: str) -> None:
    assert message in simulate(m.node("n"), shut_queue("q", names, selector)).rejected("q")


@pytest.mark.parametrize("annotation", [ALLOWED_NAMESPACES, ALLOWED_NAMESPACE_SELECTOR])
@pytest.mark.parametrize("text", ["", " ", "((", ",,"])
def test_s5_what_cannot_be_read_allows_no_namespace(annotation: str, text: str) -> None:
    queue = m.queue("q")
    queue["metadata"]["annotations"] = {annotation: text}
    assert not allowed_namespaces_of(queue).allow("a", {"team": "a"})
