"""R1–R3: which gangs starve, and since when; in which order nodes are reserved for them."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer
from support.reservations import first_reserved, full, reserved, reserving
from support.simulation import simulate

SLA = "volcano.sh/sla-waiting-time"

CLASSES = [m.priority_class("high", 1000), m.priority_class("mid", 500), m.priority_class("low", 10)]


def noted(obj: m.Obj, **notes: str) -> m.Obj:
    """With annotations; `sla="20s"` is how long it can wait."""
    kept = {SLA if key == "sla" else key: text for key, text in notes.items()}
    metadata = obj["metadata"]
    return obj | {"metadata": metadata | {"annotations": (metadata.get("annotations") or {}) | kept}}


def claims(answer: Answer) -> list[str]:
    """Objects that carry a record at the end."""
    return [
        one["metadata"]["name"]
        for one in answer.objects
        if "enbloc.dev/claim-reserve" in (one["metadata"].get("annotations") or {})
    ]


# ---- R1

DIALECTS: dict[str, list[m.Obj]] = {
    "pod": [m.pod("g-0", 4, at="1s")],
    "volcano-job": [m.job("g", m.role("w", 2, cpu=2), at="1s")],
    "volcano-podgroup": m.gang("g", 2, cpu=2, at="1s"),
    "koordinator-annotations": m.koordinator_gang("g", 2, cpu=2, at="1s"),
    "koordinator-podgroup": [m.sigs_podgroup("g", 2, at="1s"), *m.labelled_pods("g", 2, cpu=2, at="1s")],
    "scheduler-plugins": [
        m.sigs_podgroup("g", 2, api=m.PLUGINS, at="1s"),
        *m.labelled_pods("g", 2, m.PLUGINS_LABEL, 2, at="1s"),
    ],
    "kubernetes": [
        noted(m.native_podgroup("g", {"gang": {"minCount": 2}}), **{"sim.enbloc.dev/at": "1s"}),
        *m.native_pods("g", 2, cpu=2, at="1s"),
    ],
    "scheduling-spec": [
        m.CRDJOB_DEFINITION,
        m.crdjob("c"),
        m.scheduling_spec("c", 2, at="1s"),
        *m.owned(*m.pods(2, "g-", 2, at="1s")),
    ],
    "queue-job": [m.queue_job("g", m.role("w", 2, cpu=2), minimum=2, at="1s")],
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_r1_a_gang_of_any_dialect_starves_at_the_very_instant(dialect: str) -> None:
    answer = simulate(m.node("n"), full(), DIALECTS[dialect], config=reserving())
    found = first_reserved(answer, "g-")
    assert {at for at, _ in found.values()} == {11.0}
    assert {at for at, _ in answer.bound("g-").values()} == {100.0}
    assert len(found) == len(answer.bound("g-"))
    assert not claims(answer)


def test_r1_not_an_instant_before() -> None:
    """What comes one second before the reservation still finds the node open."""
    answer = simulate(
        m.node("n"),
        full(3),
        m.pod("big", 4),
        m.pod("s", 1, at="9s"),
        m.pod("t", 1, at="10s"),
        config=reserving(),
        until="20s",
    )
    assert answer.at("s") == 9.0
    assert answer.at("t") is None


def test_r1_two_days_by_default() -> None:
    answer = simulate(m.node("n"), full(run=None), m.pod("big", 4, at="7s"), until="200000s")
    assert first_reserved(answer) == {"big": (172807.0, "n")}  # half of one node is one, rounded up


def test_r1_its_own_waiting_time_counts_instead() -> None:
    """Shorter or longer than the config's, wherever it is written."""
    for sla, at in (("20s", 21.0), ("5s", 6.0)):
        of_job = noted(m.job("g", m.role("w", 2, cpu=2), at="1s"), sla=sla)
        of_pod = m.pod("g-0", 4, at="1s", annotations={SLA.removeprefix("volcano.sh/"): sla})  # without prefix, too
        of_group = [noted(one, sla=sla) if one["kind"] == "PodGroup" else one for one in m.gang("g", 2, cpu=2, at="1s")]
        of_members = m.koordinator_gang("g", 2, cpu=2, at="1s")
        of_members = [noted(one, sla=sla) for one in of_members]
        for documents in ([of_job], [of_pod], of_group, of_members):
            answer = simulate(m.node("n"), full(), documents, config=reserving(10))
            assert {when for when, _ in first_reserved(answer, "g-").values()} == {at}, documents


def test_r1_the_default_of_the_plugin_sla_does_not_count() -> None:
    """Only a job's own annotation does (C)."""
    tiers = [{"plugins": [{"name": "sla", "arguments": {"sla-waiting-time": "15s"}}, {"name": "priority"}]}]
    answer = simulate(m.node("n"), full(), m.pod("big", 4, at="1s"), config=reserving(30, tiers=tiers))
    assert first_reserved(answer) == {"big": (31.0, "n")}


def test_r1_a_bad_waiting_time_does_not_count_and_is_reported() -> None:
    for bad in ("soon", "-5s", "0s", ""):
        answer = simulate(m.node("n"), full(), m.pod("big", 4, at="1s", annotations={SLA: bad}), config=reserving(10))
        assert first_reserved(answer) == {"big": (11.0, "n")}
        assert not bad or any(SLA in line["message"] for line in answer.lines("warning", "big"))


def test_r1_a_gang_made_anew_under_its_name_waits_for_itself() -> None:
    """Even if the first would have starved at the very instant at which the second does, and a gang before both."""
    for first, second, at in (("10s", "8s", 11.0), ("10s", "20s", 23.0), ("20s", "5s", 8.0)):
        answer = simulate(
            m.node("n"),
            full(),
            m.pod("other", 1, delete_at="9s", annotations={SLA: "4s"}),
            m.pod("big", 4, at="1s", delete_at="2s", annotations={SLA: first}),
            m.pod("big", 4, at="3s", annotations={SLA: second}),
            config=reserving(),
        )
        assert first_reserved(answer, "big") == {"big": (max(at, 9.0), "n")}
        assert answer.at("big") == 100.0


def test_r1_an_annotation_gang_is_as_old_as_its_first_pod() -> None:
    first, second = m.koordinator_gang("g", 2, cpu=2)
    second = noted(second, **{"sim.enbloc.dev/at": "8s"})
    answer = simulate(m.node("n"), full(), first, second, config=reserving(10))
    assert {at for at, _ in first_reserved(answer).values()} == {10.0}


def test_r1_an_incomplete_gang_is_reserved_for_once_it_is_complete() -> None:
    first, second = m.koordinator_gang("g", 2, cpu=2)
    second = noted(second, **{"sim.enbloc.dev/at": "30s"})
    answer = simulate(m.node("n"), full(), first, second, config=reserving(10))
    assert {at for at, _ in first_reserved(answer).values()} == {30.0}


def test_r1_surplus_does_not_starve() -> None:
    answer = simulate(m.node("n"), m.job("g", m.role("w", 6, 2, cpu=1)), config=reserving(10), until="1h")
    assert len(answer.bound("g-")) == 4
    assert not first_reserved(answer)


def test_r1_a_member_lost_by_a_satisfied_gang_does_not_starve() -> None:
    """Once satisfied, members are ordinary pods (G7): the gang is not 'not ready' for the first time."""
    lost = m.step("20s", "delete", "Pod", "g-0")
    answer = simulate(m.node("n", 2), m.gang("g", 2), lost, m.pod("s", 1, at="15s"), config=reserving(10), until="60s")
    assert answer.at("s") == 20.0
    assert not first_reserved(answer)


# ---- R2


def test_r2_each_role_must_be_enough() -> None:
    """There is a place to wait for role a, and none for role b: nothing is reserved until there is."""
    roles = [m.role("a", 1, cpu=2), m.role("b", 1, cpu=1, extra={"nvidia.com/gpu": 1})]
    oversized = {"enqueue": {"admitOversized": True}}
    quiet = simulate(m.node("n"), full(), m.job("g", *roles), config=reserving(10) | oversized)
    assert not first_reserved(quiet)
    answer = simulate(
        m.node("n"),
        full(),
        m.job("g", *roles),
        m.node("late", 1, extra={"nvidia.com/gpu": 1}, at="30s"),
        config=reserving(10) | oversized,
    )
    assert first_reserved(answer) == {"g-a-0": (30.0, "n"), "g-b-0": (30.0, "late")}
    assert set(answer.times("g-")) == {100.0}


def test_r2_what_is_occupied_counts() -> None:
    documents = [m.podgroup("g", 2), m.pod("g-0", 1, group="g", nodeName="m"), m.pod("g-1", 4, group="g")]
    answer = simulate(m.node("n"), m.node("m"), full(), documents, config=reserving(10))
    assert set(first_reserved(answer)) == {"g-1"}
    assert answer.at("g-1") is not None


def test_r2_only_what_the_minimum_needs_is_reserved() -> None:
    answer = simulate(m.node("n"), full(), m.job("g", m.role("w", 5, 2, cpu=1)), config=reserving(10), until="50s")
    assert set(first_reserved(answer)) == {"g-w-0", "g-w-1"}


def test_r2_the_total_is_made_up_of_any_tasks_that_can_be_placed() -> None:
    """Total 3 over roles without minimum: those that no node could hold are skipped."""
    relaxed = {"admission": {"minAvailable": "relaxed"}, "enqueue": {"admitOversized": True}}
    one = m.job("g", m.role("a", 2, cpu=9), m.role("b", 3, cpu=1), minimum=3)
    answer = simulate(m.node("n"), full(), one, config=reserving(10) | relaxed, until="50s")
    assert set(first_reserved(answer)) == {"g-b-0", "g-b-1", "g-b-2"}


# ---- R3


def test_r3_what_cannot_succeed_leaves_no_trace() -> None:
    """Half of two nodes is one; the gang needs both."""
    answer = simulate(
        m.node("n"),
        m.node("m"),
        full(),
        full(on="m", name="full2"),
        m.gang("g", 2, cpu=4),
        config=reserving(10, 50),
    )
    assert not answer.lines("reserved")
    assert not answer.lines("released")
    assert set(answer.times("g-")) == {100.0}


def test_r3_no_trace_is_left_on_the_objects_either() -> None:
    answer = simulate(
        m.node("n"),
        m.node("m"),
        full(run=None),
        full(None, on="m", name="other"),
        m.gang("g", 2, cpu=4),
        config=reserving(10, 50),
        until="1h",
    )
    assert not claims(answer)
    assert "no nodes are reserved for it: it needs more than 1 of 2 nodes" in answer.why("default/g")


def test_r3_the_highest_order_is_served_first() -> None:
    """The younger one has the higher priority; the node can be reserved for one of them only."""
    answer = simulate(
        CLASSES,
        m.node("n"),
        full(),
        m.pod("old", 4, priority="low", run_time="10s"),
        m.pod("new", 4, priority="high", at="5s", run_time="10s"),
        config=reserving(20),
    )
    assert first_reserved(answer, "old")["old"][0] == 20.0, "new does not starve yet"
    answer = simulate(
        CLASSES,
        m.node("n"),
        full(),
        m.pod("old", 4, priority="low", run_time="10s", annotations={SLA: "25s"}),
        m.pod("new", 4, priority="high", at="5s", run_time="10s"),
        config=reserving(20),
    )
    assert first_reserved(answer, "new")["new"][0] == 25.0
    assert (answer.at("new"), answer.at("old")) == (100.0, 110.0)


def test_r3_the_older_of_equals_is_served_first() -> None:
    answer = simulate(
        m.node("n"),
        full(),
        m.pod("b", 4, run_time="10s", annotations={SLA: "30s"}),
        m.pod("a", 4, at="1s", run_time="10s", annotations={SLA: "29s"}),
        config=reserving(),
    )
    assert first_reserved(answer, "b") == {"b": (30.0, "n")}
    assert (answer.at("b"), answer.at("a")) == (100.0, 110.0)


def test_r3_not_in_a_cycle_in_which_a_gang_of_higher_order_was_scheduled() -> None:
    """The one of higher order is bound first; then the starving one has its turn, in the same instant."""
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.node("m"),
        full(),
        m.pod("x", 3, nodeName="m"),
        m.pod("big", 4, priority="low"),
        m.pod("vip", 1, at="10s", priority="high"),
        config=reserving(10),
        until="20s",
    )
    what = [(line["what"], line["name"]) for line in answer.timeline if line["what"] in ("bound", "reserved")]
    assert what.index(("bound", "vip")) < what.index(("reserved", "big"))
    assert first_reserved(answer, "big")["big"][0] == 10.0


def test_r3_one_that_cannot_succeed_does_not_block_the_next() -> None:
    answer = simulate(
        CLASSES,
        m.node("n"),
        full(),
        m.pod("huge", 9, priority="high"),
        m.pod("big", 4, priority="low", at="1s"),
        config=reserving(10),
        until="20s",
    )
    assert first_reserved(answer) == {"big": (11.0, "n")}


def test_r3_after_a_take_over_those_that_failed_before_are_tried_in_their_order() -> None:
    """At 10 s the node is reserved for `big`, and `first` finds no room beside it. At 15 s `vip` takes the node over:
    the room beside it is for `first`, not for `second`, which starves since then."""
    answer = simulate(
        CLASSES,
        m.node("n"),
        full(),
        m.pod("big", 4, priority="low"),
        m.pod("first", 1, priority="low"),
        m.pod("vip", 3, priority="high", at="5s"),
        m.pod("second", 1, priority="low", at="5s"),
        config=reserving(10),
        until="60s",
    )
    assert first_reserved(answer) == {"big": (10.0, "n"), "vip": (15.0, "n"), "first": (15.0, "n")}


def test_r3_a_gang_whose_nodes_are_taken_over_is_planned_anew_in_its_order() -> None:
    """`vip` takes n over from `big`; the other node is for `big`, not for `late`, which is behind it."""
    answer = simulate(
        CLASSES,
        m.node("n", 5),
        m.node("o"),
        full(4),
        full(4, on="o", name="full2"),
        m.pod("big", 4, priority="low"),
        m.pod("vip", 4, priority="high", at="5s"),
        m.pod("late", 4, priority="low", at="5s"),
        config=reserving(10),
        until="60s",
    )
    assert first_reserved(answer) == {"big": (10.0, "n"), "vip": (15.0, "n")}
    assert reserved(answer) == {"big": (15.0, "o"), "vip": (15.0, "n")}


def test_r3_it_succeeds_later_if_a_node_comes() -> None:
    late = [m.node("m", 4, at="30s"), m.pod("x", 1, nodeName="m", at="30s", run_time="30s")]
    answer = simulate(m.node("n", 2), m.pod("big", 4), late, config=reserving(10))
    assert first_reserved(answer) == {"big": (30.0, "m")}
    assert answer.at("big") == 60.0


# ---- R1, over restarts and changes


@pytest.mark.parametrize("at", ["9s", "10s", "11s"])
def test_r1_a_restart_at_the_very_instant_delays_nothing(at: str) -> None:
    answer = simulate(m.node("n"), full(), m.pod("big", 4), m.restart(at), config=reserving(10), until="60s")
    assert [line["t"] for line in answer.lines("reserved")] == [10.0]


def test_r1_a_waiting_time_that_is_over_when_it_is_written() -> None:
    patch = {"metadata": {"annotations": {SLA: "5s"}}}
    late = m.step("50s", "patch", "Pod", "big", patch=patch)
    answer = simulate(m.node("n"), full(), m.pod("big", 4), late, config=reserving(1000), until="60s")
    assert first_reserved(answer) == {"big": (50.0, "n")}


def test_r7_room_that_is_there_when_it_is_reserved_is_used_at_once() -> None:
    """`shy` keeps away from `web`. When `web` ends, the node is reserved for `big`, and then for `shy` too."""
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    answer = simulate(
        m.node("n"),
        full(2, "60s"),
        m.pod("web", 1, nodeName="n", run_time="30s", labels={"app": "web"}),
        m.pod("big", 3),
        m.pod("shy", 1, at="1s", affinity=away),
        config=reserving(10),
        until="70s",
    )
    assert first_reserved(answer) == {"big": (10.0, "n"), "shy": (30.0, "n")}
    assert answer.at("shy") == 30.0


@pytest.mark.parametrize("first", ["before", "after"])
def test_r3_nothing_is_reserved_for_those_behind_in_a_fifo_queue(first: str) -> None:
    """`ahead` is not enqueued: its queue may not use so much. It comes before or after `big` was tried in vain."""
    fifo = m.queue("q", dequeueStrategy="fifo", capability={"cpu": "4"})
    ahead = m.job("ahead", m.role("w", 5), priority="high", queue="q", at="0s" if first == "before" else "5s")
    answer = simulate(
        CLASSES,
        m.node("n", 8),
        fifo,
        full(6),
        m.gang("big", 1, cpu=4, queue="q"),
        ahead,
        config=reserving(10),
        until="60s",
    )
    assert not answer.lines("reserved")
