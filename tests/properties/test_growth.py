"""Twice the backlog costs about twice the work: counted, not timed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from enbloc.config import parse
from enbloc.engine.core.filters.pod_terms import PodSelector
from enbloc.engine.core.placement import attempt
from enbloc.engine.core.state.candidates import Candidates
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.queues import QueueTree
from enbloc.engine.decisions import Waits
from enbloc.engine.engine import Engine
from enbloc.engine.features.evict import evict
from enbloc.engine.features.groups.holds import Holds
from enbloc.runtime import waits_written
from enbloc.runtime.translate import Translator
from enbloc.units import Selector
from properties import strategies
from properties.world import replay
from support import manifests as m
from support.answers import Answer
from support.simulation import NO_ENQUEUE, NO_EVICTIONS, simulate


def counting(monkeypatch: pytest.MonkeyPatch, **methods: Any) -> Counter[str]:
    """How often each of these is called from now on: a name for it, its class and its own name."""
    counts: Counter[str] = Counter()
    for what, (owner, name) in methods.items():
        plain = getattr(owner, name)

        def wrapper(*args: Any, plain: Any = plain, what: str = what) -> Any:
            counts[what] += 1
            return plain(*args)

        monkeypatch.setattr(owner, name, wrapper)
    return counts


def work(monkeypatch: pytest.MonkeyPatch, jobs: int, shapes: int) -> Counter[str]:
    """A backlog of jobs that come at once, in one queue, and run two at a time; how often what was done."""
    counts = counting(
        monkeypatch,
        tries=(attempt.Placer, "place"),
        transactions=(Transaction, "__init__"),
        looks=(Candidates, "keys"),
    )
    objects = [m.node(f"n{i}", "4") for i in range(2)]
    for number in range(jobs):
        spec = strategies.pod_spec({"cpu": "2", "memory": f"{1 + number % shapes}Mi"})
        run_time = {"sim.enbloc.dev/run-time": "10s"}
        objects.append(m.job(f"j{number}", *[m.role("w", 2, annotations=run_time, **spec)]))
    result = replay(objects, parse(None), 10**15)
    monkeypatch.undo()
    assert result.summary["pods"]["succeeded"] == 2 * jobs, result.story
    return counts


@pytest.mark.parametrize("shapes", [1, 3])
def test_g9_work_grows_with_the_backlog_and_not_with_its_square(monkeypatch: pytest.MonkeyPatch, shapes: int) -> None:
    few, many = work(monkeypatch, 40, shapes), work(monkeypatch, 80, shapes)
    for what in few:
        assert many[what] <= 2.2 * few[what], f"{what}: {few[what]} for 40 jobs, {many[what]} for 80"
        assert many[what] <= 12 * 160, f"{what}: {many[what]} for 160 pods"


def claim(name: str, at: str) -> m.Obj:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": "default", "annotations": {"sim.enbloc.dev/at": at}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def test_g9_a_claim_wakes_only_pods_that_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods wait for claims that are not bound, and pods without claims for room, while claims come one by one. The
    simulation's answer, which looks at all that wait once more (G10), is left out."""
    monkeypatch.setattr(Engine, "rediagnose", lambda engine: None)
    counts = counting(monkeypatch, tries=(attempt.Placer, "place"))
    named = [
        m.pod(f"p{i}", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": f"c{i}"}}]) for i in range(40)
    ]
    plain = [m.pod(f"q{i}", 100 + i) for i in range(40)]
    simulate(m.node("n"), named, plain, [claim(f"c{i}", f"{i + 1}s") for i in range(40)], config=NO_ENQUEUE)
    assert counts["tries"] <= 3 * 80


def test_pods_meet_only_the_budgets_that_their_labels_lead_to(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = counting(monkeypatch, pods=(PodSelector, "matches"), labels=(Selector, "matches"))
    budgets = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{i}", "namespace": "default", "annotations": {"sim.enbloc.dev/at": "1s"}},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": f"a{i}"}}},
        }
        for i in range(40)
    ]
    simulate(
        m.node("n", 100), budgets, [m.pod(f"p{i}", labels={"app": f"a{i}"}, at="2s", run_time="5s") for i in range(40)]
    )
    assert counts.total() <= 12 * 40


def queue_work(monkeypatch: pytest.MonkeyPatch, queues: int) -> Counter[str]:
    """A job in each of so many queues; there is room for all of them."""
    counts = counting(
        monkeypatch,
        shares=(QueueTree, "share"),
        within=(QueueTree, "within_share"),
        relinked=(QueueTree, "_relink"),
    )
    objects = [m.node(f"n{i}", "400") for i in range(2)]
    for number in range(queues):
        objects += [
            m.queue(f"q{number}"),
            m.job(f"j{number}", m.role("w", 2, cpu=2, run_time="10s"), queue=f"q{number}"),
        ]
    simulate(objects, config=NO_EVICTIONS)
    monkeypatch.undo()
    return counts


def test_g8_choosing_the_next_queue_does_not_look_at_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = queue_work(monkeypatch, 20), queue_work(monkeypatch, 40)
    for what in few:
        assert many[what] <= 2.2 * few[what] + 4, f"{what}: {few[what]} for 20 queues, {many[what]} for 40"


def test_p1_no_plan_is_made_where_nothing_is_of_lower_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of distinct priorities run two at a time: those that wait are of lower priority than those that run."""
    counts = counting(monkeypatch, served=(evict, "_serve"))
    objects: list[m.Obj] = [m.node(f"n{i}", "4") for i in range(2)]
    for number in range(20):
        objects.append(m.priority_class(f"p{number}", 100 - number))
        objects.append(m.job(f"j{number}", m.role("w", 2, cpu=2, run_time="10s"), priority=f"p{number}"))
    answer = simulate(objects, config={"actions": "enqueue, allocate, backfill, preempt"})
    assert len(answer.bindings()) == 40
    assert counts["served"] == 0


def conditions_written(monkeypatch: pytest.MonkeyPatch, jobs: int, **queue: Any) -> int:
    """How many objects say why they wait, each time that one does, while jobs of mixed sizes run a few at a time."""
    written = 0
    waits = Translator._waits

    def counted(translator: Translator, decision: Waits, now_ns: int) -> Any:
        nonlocal written
        written += decision.of_gang + len(decision.pods)
        return waits(translator, decision, now_ns)

    monkeypatch.setattr(Translator, "_waits", counted)
    monkeypatch.setattr(waits_written, "OBJECTS_PER_SPAN", 4)  # so that few jobs are many
    objects = [m.node(f"n{i}", 8) for i in range(4)] + [m.queue("line", **queue)]
    for number in range(jobs):
        role = m.role("w", 1 + number * 7 % 12, cpu=2, run_time=f"{30 + number * 37 % 90}s")
        objects.append(m.job(f"j{number}", role, queue="line"))
    simulate(objects, config=NO_EVICTIONS)
    monkeypatch.undo()
    return written


@pytest.mark.parametrize("queue", [{}, {"dequeueStrategy": "fifo"}], ids=["fair", "fifo"])
def test_g10_conditions_written_grow_with_the_backlog_and_not_with_its_square(
    monkeypatch: pytest.MonkeyPatch, queue: dict[str, Any]
) -> None:
    few, many = conditions_written(monkeypatch, 20, **queue), conditions_written(monkeypatch, 40, **queue)
    assert many <= 2.5 * few, f"{few} conditions for 20 jobs, {many} for 40"


def groups_played(monkeypatch: pytest.MonkeyPatch, count: int) -> tuple[Answer, int]:
    """NonStrict groups of two gangs, of three shapes, that run a few at a time; how often places were looked for."""
    counts = counting(monkeypatch, tries=(attempt.Placer, "place"))
    objects: list[m.Obj] = [m.node(f"n{i}", 8) for i in range(3)]
    for number in range(count):
        names = [f"g{number:02}-{each}" for each in "ab"]
        for name in names:
            fields = {"mode": "NonStrict", "groups": [f"default/{one}" for one in names], "run_time": "20s"}
            objects += m.koordinator_gang(name, 2 + number % 3, cpu=2, **fields)
    answer = simulate(objects, config=NO_EVICTIONS)
    assert len(answer.bindings()) == sum(2 * (2 + number % 3) for number in range(count))
    monkeypatch.undo()
    return answer, counts["tries"]


def test_g9_groups_that_ask_for_the_same_are_not_all_attempted(monkeypatch: pytest.MonkeyPatch) -> None:
    (_, few), (_, many) = groups_played(monkeypatch, 12), groups_played(monkeypatch, 24)
    assert many <= 2.6 * few, f"{few} tries for 12 groups, {many} for 24"


def test_g9_what_groups_do_and_say_is_the_same_if_all_are_attempted(monkeypatch: pytest.MonkeyPatch) -> None:
    shared, tries = groups_played(monkeypatch, 12)
    monkeypatch.setattr(Holds, "alike", lambda *_: None)
    plain, more = groups_played(monkeypatch, 12)
    assert shared.lines() == plain.lines()
    assert shared.all("Pod") == plain.all("Pod")
    assert tries < more
