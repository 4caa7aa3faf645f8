"""V5: a PodGroup or queue that disappears under its pods, and one that is not there yet."""

from __future__ import annotations

from enbloc.advice.explanation import explain, nearest_gang
from enbloc.config import parse
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from support import manifests as m
from support.answers import waits_because
from support.simulation import documents, simulate


def test_v5_pods_wait_for_a_group_that_does_not_exist_yet() -> None:
    answer = simulate(
        m.node("n"), m.pods(2, "a", group="late"), m.podgroup("late", 3, at="10s"), m.pod("a2", group="late", at="20s")
    )
    assert answer.times() == [20.0] * 3
    early = simulate(m.node("n"), m.pods(2, "a", group="late"))
    assert not early.bound()
    found = early.pending("default/late")
    assert found["dialect"] == "volcano"
    for reported in (found["message"], waits_because(early.obj("Pod", "a0"))):
        assert "PodGroup default/late does not exist" in reported


def test_v5_a_vanished_group_what_runs_runs_on_what_waits_says_so() -> None:
    docs = [m.node("n", 2), *m.gang("a", 3, minimum=2, run_time="60s"), m.step("10s", "delete", "PodGroup", "a")]
    answer = simulate(docs, until="30s")
    assert sorted(answer.bound()) == ["a-0", "a-1"]
    assert not answer.lines("deleted", kind="Pod")
    assert not answer.lines("evicted")
    assert "PodGroup default/a does not exist" in waits_because(answer.obj("Pod", "a-2"))
    ended = simulate(docs)
    assert ended.at("a-0", "succeeded") == 60.0
    assert not ended.bound("a-2")


def test_v5_a_waiting_gang_whose_group_vanished_goes_on_when_it_is_back() -> None:
    answer = simulate(
        m.node("n", 1),
        m.gang("a", 2),
        m.step("10s", "delete", "PodGroup", "a"),
        m.node("m", 1, at="20s"),
        m.podgroup("a", 2, at="30s"),
    )
    assert answer.times() == [30.0, 30.0]


def test_v5_a_group_that_is_back_remembers_that_it_was_satisfied() -> None:
    answer = simulate(
        m.node("n", 2),
        m.gang("a", 2),
        m.step("10s", "delete", "PodGroup", "a"),
        m.restart("15s"),
        m.podgroup("a", 2, at="20s"),
        m.step("25s", "delete", "Pod", "a-0"),
        m.step("25s", "delete", "Pod", "a-1"),
        m.pods(2, "b", group="a", at="25s"),
    )
    assert len(answer.bound("b")) == 2  # all of it gone: it starts anew, and both fit
    answer = simulate(
        m.node("n", 2),
        m.gang("a", 2),
        m.step("10s", "delete", "PodGroup", "a"),
        m.restart("15s"),
        m.podgroup("a", 2, at="20s"),
        m.step("25s", "delete", "Pod", "a-0"),
        m.pod("b", group="a", at="25s"),
    )
    assert answer.at("b") == 25.0


def test_v5_a_jobs_group_is_made_anew_and_its_pods_run_on() -> None:
    made = m.job("j", m.role("w", 4, run_time="60s"))
    made["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
    group = "j-11111111-2222-3333-4444-555555555555"
    answer = simulate(
        m.node("n"), made, m.step("10s", "delete", "PodGroup", group), m.step("20s", "delete", "Pod", "j-w-1")
    )
    assert not answer.lines("evicted")
    assert [line["t"] for line in answer.lines("created", group)] == [0.0, 10.0]
    assert [line["t"] for line in answer.lines("bound", "j-w-1")] == [0.0, 20.0]
    assert answer.obj("Job", "j")["status"]["state"]["phase"] == "Completed"
    assert not answer.data["pending"]
    assert not waits_because(answer.obj("PodGroup", group))


def test_v5_a_vanished_queue_what_runs_runs_on_what_waits_says_so() -> None:
    docs = [
        m.queue("q"),
        m.node("n", 3),
        *m.gang("a", 2, queue="q", run_time="60s"),
        *m.gang("b", 2, queue="q", run_time="60s"),
        m.step("10s", "delete", "Queue", "q"),
    ]
    answer = simulate(docs)
    assert answer.at("a-0", "succeeded") == 60.0
    assert not answer.lines("evicted")
    assert not answer.bound("b")
    for reported in (
        answer.why("default/b"),
        waits_because(answer.obj("PodGroup", "b")),
        waits_because(answer.obj("Pod", "b-0")),
    ):
        assert "queue q does not exist" in reported
    again = simulate(docs, m.step("90s", "create", object=m.queue("q")))
    assert again.times("b") == [90.0, 90.0]


def test_v5_a_job_in_a_vanished_queue_runs_to_its_end() -> None:
    answer = simulate(m.queue("q", delete_at="10s"), m.node("n"), m.job("j", m.role("w", 2, run_time="60s"), queue="q"))
    assert answer.obj("Job", "j")["status"]["state"]["phase"] == "Completed"


def test_v5_a_bare_pod_whose_queue_does_not_exist_says_so() -> None:
    answer = simulate(m.node("n"), m.pod("p", annotations={"scheduling.volcano.sh/queue-name": "nowhere"}))
    assert not answer.bound()
    assert "queue nowhere does not exist" in waits_because(answer.obj("Pod", "p"))


def test_g10_a_pod_whose_podgroup_is_missing_is_explained() -> None:
    simulation = Simulation(read_scenario(documents(m.node("n"), m.pod("orphan-0", group="nowhere"))), parse(None))
    objects = simulation.run().objects
    said = explain(objects, simulation.begin_ns, parse(None), "orphan-0")
    assert said is not None
    assert (said.gang, said.sentence) == ("default/nowhere", "It waits: PodGroup default/nowhere does not exist.")
    assert explain(objects, simulation.begin_ns, parse(None), "orphans-0") is None
    assert nearest_gang(objects, parse(None), "orphans-0") == "default/orphan-0"


def test_v5_p2_pods_of_a_queue_that_was_deleted_are_not_reclaimed() -> None:
    reclaimer = m.pod("b", 3, queue="owns", at="10s")
    config = {"actions": [{"name": name} for name in ("enqueue", "allocate", "reclaim")]}
    story = [m.node("n"), m.queue("owns", deserved={"cpu": "4"}), m.queue("other"), m.pod("a", 3, queue="other")]
    assert simulate(story, reclaimer, config=config, until="60s").at("b") == 10.0
    deleted = simulate(story, m.step("5s", "delete", "Queue", "other"), reclaimer, config=config, until="60s")
    assert not deleted.lines("evicted")
    assert deleted.why("default/b") == "1 of 1 pod does not fit: 0/1 nodes are available: 1 Insufficient cpu."
