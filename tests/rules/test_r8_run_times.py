"""R8: run times that are known let others use reserved room in time, and give the expected start."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

RUN_TIME = "enbloc.dev/expected-duration"
START = "enbloc.dev/expected-start"
RESERVED = "node(s) resource was(were) reserved"


def reserving(after: int = 10, percent: int = 100, mode: str = "best-effort") -> m.Obj:
    arguments = {"starvingJobTimeThreshold": after, "reservedNodePercent": percent}
    backfill = {"name": "backfill", "arguments": {"mode": mode}}
    named = [{"name": "enqueue"}, {"name": "allocate"}, backfill, {"name": "reserve", "arguments": arguments}]
    return {"actions": named}


EASY: m.Obj = {
    "actions": [{"name": "enqueue"}, {"name": "allocate"}, {"name": "backfill", "arguments": {"mode": "easy"}}]
}


def timed(name: str, cpu: int, expected: str | None, run: str | None = None, **more: Any) -> m.Obj:
    """A pod that says how long it will run, and does so unless `run` says otherwise."""
    notes = {RUN_TIME: expected} if expected else {}
    return m.pod(name, cpu, run_time=run or expected, annotations={**notes, **more.pop("notes", {})}, **more)


def waiting(*more: Any, **kw: Any) -> Answer:
    """4 cpu, of which 2 are used until 100s; `big` needs them all, and the node is reserved for it at 10s."""
    config = kw.pop("config", reserving())
    return simulate(m.node("n"), timed("ahead", 2, "100s"), m.pod("big", 4, run_time="50s"), *more, config=config, **kw)


def starts(obj: m.Obj) -> str | None:
    found: str | None = (obj["metadata"].get("annotations") or {}).get(START)
    return found


def holding(name: str, cpu: int, expected: str, at: str = "0s") -> list[m.Obj]:
    """A NonStrict gang of two pods that say how long they will run once they start."""
    notes = {**m.koordinator_annotations(name, 2, mode="NonStrict"), RUN_TIME: expected}
    return [m.pod(f"{name}-{index}", cpu, run_time=expected, annotations=notes, at=at) for index in range(2)]


# ---- who may pass


@pytest.mark.parametrize("mode", ["best-effort", "easy"])
@pytest.mark.parametrize("expected, passes", [("79s", True), ("80s", True), ("81s", False), (None, False)])
def test_r8_a_pod_that_ends_in_time_may_use_the_node_meanwhile(mode: str, expected: str | None, passes: bool) -> None:
    """At 20s there are exactly 80s left."""
    answer = waiting(timed("s", 2, expected, "70s", at="20s"), config=reserving(mode=mode))
    assert (answer.at("s") == 20.0) == passes
    assert answer.at("big") == 100.0
    if not passes:
        assert answer.at("s") == 150.0


@pytest.mark.parametrize("mode", ["best-effort", "easy"])
@pytest.mark.parametrize("seconds, passes", [(80, True), (81, False)])
def test_r8_an_active_deadline_is_a_known_run_time(mode: str, seconds: int, passes: bool) -> None:
    answer = waiting(m.pod("s", 2, at="20s", activeDeadlineSeconds=seconds), config=reserving(mode=mode))
    assert (answer.at("s") == 20.0) == passes
    assert answer.at("big") == 100.0


def test_r8_an_active_deadline_ends_the_pod() -> None:
    answer = waiting(m.pod("s", 2, at="20s", activeDeadlineSeconds=60))
    assert answer.at("s") == 20.0
    assert answer.at("s", "failed") == 80.0
    assert answer.at("big") == 100.0


def test_r8_what_runs_with_a_deadline_is_expected_to_end_by_it() -> None:
    answer = simulate(
        m.node("n"),
        m.pod("ahead", 2, activeDeadlineSeconds=100),
        m.pod("big", 4),
        timed("s", 2, "80s", at="20s"),
        timed("t", 2, "81s", at="20s"),
        config=reserving(),
    )
    assert answer.at("s") == 20.0
    assert answer.at("big") == 100.0


def test_r8_the_shorter_of_both_counts() -> None:
    """A pod that is ended after 70s does not run for the 90s it expects."""
    answer = waiting(timed("s", 2, "90s", "200s", at="20s", activeDeadlineSeconds=70))
    assert answer.at("s") == 20.0
    assert answer.at("big") == 100.0


def test_r8_the_run_time_may_be_on_the_group() -> None:
    of_group = m.gang("s", 2, run_time="60s", at="20s")
    of_group[0]["metadata"]["annotations"][RUN_TIME] = "80s"
    assert waiting(of_group).times("s-") == [20.0, 20.0]


def test_r8_what_a_pod_says_of_itself_comes_before_its_groups_word() -> None:
    of_group = m.gang("s", 2, run_time="60s", at="20s", annotations={RUN_TIME: "90s"})
    of_group[0]["metadata"]["annotations"][RUN_TIME] = "80s"
    assert waiting(of_group).times("s-") == [150.0, 150.0]


def test_r8_a_pod_is_not_held_on_a_reserved_node_though_it_would_end_in_time() -> None:
    """It has not started, and keeps the room for as long as its gang waits (K6)."""
    answer = waiting(*holding("g", 2, "70s", "20s"))
    assert answer.at("big") == 100.0


@pytest.mark.parametrize("mode", ["easy", "conservative"])
def test_r8_a_pod_is_not_held_on_room_of_a_gang_before_it_though_it_would_end_in_time(mode: str) -> None:
    """The room of `big` at 100s is kept for it, also while its node is not reserved (K6)."""
    backfill = {"name": "backfill", "arguments": {"mode": mode}}
    answer = waiting(*holding("g", 2, "70s", "20s"), config={"actions": [{"name": "allocate"}, backfill]})
    assert answer.at("big") == 100.0
    assert answer.times("g-") == [150.0, 150.0]


def test_r8_a_gang_that_would_not_fit_anyway_does_not_pass() -> None:
    answer = waiting(timed("s", 3, "10s", at="20s"), until="90s")
    assert answer.at("s") is None


def test_r8_one_after_the_other_as_long_as_there_is_time() -> None:
    answer = waiting([timed(f"s{i}", 2, "25s", at="20s") for i in range(5)])
    assert sorted(answer.times("s"))[:3] == [20.0, 45.0, 70.0]
    assert answer.at("big") == 100.0
    assert sorted(answer.times("s"))[3] == 150.0


def test_r8_a_bad_run_time_does_not_count_and_is_reported() -> None:
    for bad in ("soon", "-1s", "0s"):
        answer = waiting(m.pod("s", 2, at="20s", run_time="10s", annotations={RUN_TIME: bad}))
        assert answer.at("s") == 150.0
        assert any(RUN_TIME in line["message"] for line in answer.lines("warning", "s"))


# ---- overruns


def test_r8_one_that_overruns_delays_and_is_not_killed() -> None:
    answer = waiting(timed("s", 2, "80s", "100s", at="20s"))
    assert answer.at("s") == 20.0
    assert answer.at("s", "succeeded") == 120.0
    assert answer.at("big") == 120.0
    assert not answer.lines("evicted") + answer.lines("deleted")


def test_r8_while_a_pod_overruns_no_gang_passes() -> None:
    """It may end any moment: the reservation is due."""
    answer = waiting(
        timed("s", 2, "50s", "150s", at="20s"), timed("t", 1, "1s", at="110s"), timed("u", 2, "1s", at="120s")
    )
    assert answer.at("big") == 170.0
    assert answer.at("t") == answer.at("u") == 220.0


def test_r8_one_that_ends_early_lets_it_start_early() -> None:
    answer = simulate(m.node("n"), timed("ahead", 2, "100s", "60s"), m.pod("big", 4), config=reserving())
    assert answer.at("big") == 60.0


def test_r8_the_forecast_is_refreshed_by_every_change() -> None:
    """ahead ends early: what passed meanwhile delays big, and no other pod passes after that."""
    answer = simulate(
        m.node("n"),
        timed("ahead", 2, "100s", "40s"),
        m.pod("big", 4),
        timed("s", 1, "80s", at="20s"),
        timed("t", 1, "50s", at="50s"),
        timed("u", 1, "52s", at="49s"),
        config=reserving(),
    )
    assert answer.at("s") == 20.0
    assert answer.at("t") == 50.0
    assert answer.at("big") == 100.0
    assert answer.at("u") is None or answer.at("u") >= 100.0  # type: ignore[operator]


# ---- the expected start


def test_r8_the_expected_start_is_published() -> None:
    answer = waiting(until="50s")
    found = answer.pending("default/big")
    published = starts(answer.obj("Pod", "big"))
    assert published is not None
    assert published.endswith("T00:01:40Z")
    assert any("00:01:40" in str(value) or value == 100.0 for value in found.values()), found


def test_r8_the_expected_start_is_on_the_object_the_user_wrote() -> None:
    one = m.job("g", m.role("w", 2, cpu=2))
    answer = simulate(m.node("n"), timed("ahead", 2, "100s"), one, config=reserving(), until="50s")
    on_job, on_group = starts(answer.obj("Job", "g")), starts(answer.group_of("g"))
    assert (on_job or on_group or "").endswith("T00:01:40Z")
    answer = simulate(
        m.node("n"), timed("ahead", 2, "100s"), m.koordinator_gang("g", 2, cpu=2), config=reserving(), until="50s"
    )
    assert any((starts(one) or "").endswith("T00:01:40Z") for one in answer.all("Pod", "g-"))


def test_r8_the_expected_start_is_of_the_last_node_that_it_needs() -> None:
    answer = simulate(
        m.node("n"),
        m.node("m"),
        timed("a", 2, "60s", nodeName="n"),
        timed("b", 2, "90s", nodeName="m"),
        m.gang("g", 2, cpu=4),
        config=reserving(),
        until="50s",
    )
    assert (starts(answer.obj("PodGroup", "g")) or "").endswith("T00:01:30Z")


def test_r8_the_expected_start_moves_with_the_forecast() -> None:
    answer = simulate(
        m.node("n"),
        timed("ahead", 2, "100s", "40s"),
        timed("second", 2, "70s"),
        m.pod("big", 4, at="1s"),
        config=reserving(),
        until="50s",
    )
    assert (starts(answer.obj("Pod", "big")) or "").endswith("T00:01:10Z")


def test_r8_the_start_is_unknown_if_one_run_time_is() -> None:
    answer = simulate(m.node("n"), m.pod("ahead", 2), m.pod("big", 4), config=reserving(), until="50s")
    assert starts(answer.obj("Pod", "big")) is None
    found = answer.pending("default/big")
    assert not found.get("expected_start")


def test_r8_the_expected_start_is_withdrawn_when_it_has_started_or_is_not_reserved_any_more() -> None:
    answer = waiting(until="120s")
    assert starts(answer.obj("Pod", "big")) is None
    cordon = m.step("30s", "patch", "Node", "n", patch={"spec": {"unschedulable": True}})
    answer = waiting(cordon, until="60s")
    assert starts(answer.obj("Pod", "big")) is None


def test_r8_a_restart_does_not_change_the_forecast() -> None:
    documents = ([timed(f"s{i}", 1, f"{20 + 5 * i}s", at=f"{20 + 3 * i}s") for i in range(10)],)
    expected = waiting(*documents)
    for instants in [(i,) for i in range(5, 100, 11)] + [tuple(range(1, 120, 7))]:
        answer = waiting(*documents, [m.restart(f"{i}s") for i in instants])
        assert answer.lines("bound") == expected.lines("bound"), instants
    answer = waiting(m.restart("40s"), until="50s")
    assert (starts(answer.obj("Pod", "big")) or "").endswith("T00:01:40Z")


# ---- EASY


def queued(*more: Any, room: int = 4, **kw: Any) -> Answer:
    """`ahead` uses 2 cpu until 100s; `head` needs 4 and is the first that waits."""
    head = kw.pop("head", 4)
    return simulate(
        m.node("n", room),
        timed("ahead", room - 2, "100s"),
        m.pod("head", head, at="1s", run_time="50s"),
        *more,
        config=kw.pop("config", EASY),
        **kw,
    )


@pytest.mark.parametrize("expected, passes", [("98s", True), ("99s", False), (None, False)])
def test_r8_easy_later_ones_pass_if_they_do_not_delay_the_first(expected: str | None, passes: bool) -> None:
    answer = queued(timed("s", 2, expected, "60s", at="2s"))
    assert (answer.at("s") == 2.0) == passes
    assert answer.at("head") == 100.0


def test_r8_easy_needs_no_starving() -> None:
    assert not queued(timed("s", 2, "50s", at="2s")).lines("reserved")


def test_r8_without_easy_every_gang_passes() -> None:
    answer = queued(timed("s", 2, "500s", at="2s"), config={"actions": "enqueue, allocate, backfill"})
    assert answer.at("s") == 2.0
    assert answer.at("head") == 502.0


def test_r8_easy_leaves_the_extra_nodes_to_any_gang() -> None:
    """8 cpu: at 100s head takes 6, so that 2 are extra: for one of the two that run longer."""
    answer = simulate(
        m.node("n", 8),
        timed("ahead", 4, "100s"),
        m.pod("head", 6, at="1s", run_time="50s"),
        timed("s", 2, "500s", at="2s"),
        timed("t", 2, "500s", at="3s"),
        m.pod("u", 2, at="4s"),
        config=EASY,
    )
    assert answer.at("s") == 2.0
    assert answer.at("head") == 100.0
    assert answer.at("t") == 150.0


def test_r8_easy_another_node_that_the_first_does_not_need_is_open() -> None:
    answer = queued(m.node("m", 2), m.pod("s", 2, at="2s"))
    assert answer.bound("s")["s"] == (2.0, "m")


def test_r8_easy_an_unknown_end_reserves_nothing() -> None:
    """The start of the head is unknown: it delays no other gang, as without EASY."""
    answer = simulate(
        m.node("n"),
        m.pod("ahead", 2, run_time="100s"),
        m.pod("head", 4, at="1s"),
        m.pod("s", 2, at="2s", run_time="200s"),
        config=EASY,
    )
    assert answer.at("s") == 2.0
    assert answer.at("head") == 202.0


def test_r8_g8_easy_one_that_leaves_room_to_awaited_pods_is_the_first() -> None:
    """4 cpu, 2 of them used until 10s. In the cycle that enqueues `urgent` its pod does not exist: `head` leaves it
    room, and none behind `head` takes what that needs at 10s."""
    answer = simulate(
        m.node("n"),
        m.priority_class("high", 100),
        timed("ahead", 2, "10s"),
        m.one_pod_job("urgent", priority="high", at="5s"),
        m.pod("head", 3, at="5s", run_time="50s"),
        m.pod("s", 1, at="5s", run_time="500s"),
        config=EASY,
    )
    assert answer.at("urgent-w-0") == 5.0
    assert answer.at("head") == 10.0
    assert answer.at("s") == 60.0


def test_r8_easy_the_first_may_be_a_replacement_of_a_gang_that_lacks_more_members() -> None:
    """It was satisfied once, and goes on one by one (G7); how many of its members exist does not matter."""
    answer = simulate(
        m.node("n"),
        m.gang("g", 4),
        m.step("1s", "delete", "Pod", "g-2"),
        m.step("1s", "delete", "Pod", "g-3"),
        timed("ahead", 2, "100s", at="2s"),
        m.pod("g-2", group="g", at="3s"),
        config=EASY,
    )
    assert answer.at("ahead") == 2.0
    assert answer.times("g-2") == [0.0, 102.0]


@pytest.mark.parametrize("mode", ["easy", "conservative"])
def test_r8_g3_surplus_of_a_gang_that_lost_a_member_does_not_delay_a_younger_gang(mode: str) -> None:
    """Its member is not recreated: what waits of it is surplus, and comes behind every minimum."""
    answer = simulate(
        m.node("n"),
        m.podgroup("g", 2, roles={"w": 1, "x": 1}),
        timed("w-0", 1, "100s", group="g", role="w"),
        [timed(f"x-{index}", 1, "100s", group="g", role="x") for index in range(2)],
        timed("big", 4, "50s", at="5s"),
        m.step("10s", "delete", "Pod", "w-0"),
        timed("x-2", 1, "500s", group="g", role="x", at="20s"),
        config={"actions": [{"name": "allocate"}, {"name": "backfill", "arguments": {"mode": mode}}]},
    )
    assert answer.at("big") == 100.0
    assert answer.at("x-2") == 150.0


@pytest.mark.parametrize("mode", ["best-effort", "easy", "conservative"])
def test_r8_g10_the_answer_of_sim_has_the_numbers_of_the_state_that_it_shows(mode: str) -> None:
    """When `big` was attempted one of its pods would have fitted; then `small` started."""
    backfill = {"name": "backfill", "arguments": {"mode": mode}}
    answer = simulate(
        m.node("n", 3),
        m.gang("big", 3, cpu=2),
        m.pod("small", 2, at="1s"),
        config={"actions": [{"name": "allocate"}, backfill]},
        until="20s",
    )
    assert answer.at("small") == 1.0
    assert sum(answer.pending("default/big")["missing"].values()) == 3


def test_r8_easy_the_second_in_line_has_no_reservation() -> None:
    """s delays second and not head: it passes."""
    answer = simulate(
        m.node("n"),
        m.node("m"),
        timed("a", 2, "50s", nodeName="n"),
        timed("b", 2, "60s", nodeName="m"),
        m.pod("head", 4, at="1s", run_time="10s", nodeSelector={"kubernetes.io/hostname": "n"}),
        m.pod("second", 4, at="2s", nodeSelector={"kubernetes.io/hostname": "m"}),
        timed("s", 2, "100s", at="3s"),
        config=EASY,
    )
    assert answer.bound("s")["s"] == (3.0, "m")
    assert answer.at("head") == 50.0
    assert answer.at("second") == 103.0


def test_r8_easy_the_head_of_each_queue() -> None:
    """Queues are no concern of each other's heads; inside a queue they are."""
    documents = [m.queue("q"), m.queue("r"), m.node("n")]
    first, head = timed("ahead", 2, "100s"), m.gang("head", 1, cpu=4, queue="q", at="1s", run_time="10s")
    own = m.gang("own", 1, cpu=2, queue="q", at="2s")
    answer = simulate(documents, first, head, own, config=EASY)
    assert answer.at("own-0") == 110.0
    other = m.gang("other", 1, cpu=2, queue="r", at="2s", run_time="500s")
    assert simulate(documents, first, head, other, config=EASY).at("other-0") == 2.0


def test_r8_easy_a_higher_priority_that_comes_later_is_the_head() -> None:
    high = m.priority_class("high", 1000)
    answer = queued(high, timed("vip", 4, "30s", at="3s", priority="high"), timed("s", 2, "95s", at="5s"))
    assert answer.at("vip") == 100.0
    assert answer.at("s") == 5.0
    assert answer.at("head") == 130.0


def test_r8_easy_publishes_when_the_first_starts() -> None:
    answer = queued(until="50s")
    assert (starts(answer.obj("Pod", "head")) or "").endswith("T00:01:40Z")
    assert "00:01:40" in str(answer.pending("default/head"))


def test_r8_easy_gangs_of_several_nodes() -> None:
    """head needs both nodes, at 100s and at 60s; s may use m until 100s, and n not at all beyond it."""
    answer = simulate(
        m.node("n"),
        m.node("m"),
        timed("a", 4, "100s", nodeName="n"),
        timed("b", 2, "60s", nodeName="m"),
        m.gang("head", 2, cpu=4, at="1s", run_time="10s"),
        timed("s", 2, "98s", at="2s"),
        timed("t", 2, "39s", at="61s"),
        timed("u", 2, "41s", at="61s"),
        config=EASY,
    )
    assert answer.at("s") == 2.0
    assert answer.at("t") == 61.0
    assert set(answer.times("head-")) == {100.0}
    assert answer.at("u") == 110.0


def test_r8_easy_one_that_overruns_delays() -> None:
    answer = queued(timed("s", 2, "90s", "150s", at="2s"))
    assert answer.at("head") == 152.0
    assert not answer.lines("evicted")


def test_r8_easy_with_a_stream_of_small_ones_the_first_is_not_starved() -> None:
    stream = [timed(f"s{i}", 1, "20s", at=f"{2 + 3 * i}s") for i in range(60)]
    answer = queued(stream)
    assert answer.at("head") == 100.0
    assert len(answer.lines("succeeded")) == 62


def test_r8_easy_a_restart_changes_nothing() -> None:
    stream = [timed(f"s{i}", 1, f"{10 + i % 7 * 6}s", at=f"{2 + 3 * i}s") for i in range(30)]
    expected = queued(stream)
    for instants in [(i,) for i in range(3, 110, 13)] + [tuple(range(2, 150, 5))]:
        answer = queued(stream, [m.restart(f"{i}s") for i in instants])
        assert answer.lines("bound") == expected.lines("bound"), instants


def test_r8_easy_and_reserve_together() -> None:
    answer = queued(
        timed("s", 2, "50s", at="2s"),
        timed("t", 2, "45s", at="55s"),
        m.pods(2, "u", at="60s"),
        config=reserving(mode="easy"),
    )
    assert (answer.at("s"), answer.at("t"), answer.at("head")) == (2.0, 55.0, 100.0)
    assert answer.times("u") == [150.0, 150.0]


# ---- several together


def test_r8_members_of_one_kind_and_different_run_times_are_judged_each_by_its_own() -> None:
    members = [
        m.podgroup("s", 2, at="20s"),
        timed("s-0", 1, "60s", at="20s", group="s"),
        m.pod("s-1", 1, run_time="60s", at="20s", group="s"),
    ]
    assert min(waiting(members).times("s-")) >= 100.0
    answer = simulate(m.node("n"), timed("ahead", 2, "100s"), m.pod("big", 4, at="1s"), members, config=EASY)
    assert min(answer.times("s-"), default=100.0) >= 100.0


def test_r8_a_job_that_ends_in_time_is_enqueued() -> None:
    one = m.job("s", m.role("w", 2, run_time="60s"), at="20s")
    one["metadata"]["annotations"][RUN_TIME] = "80s"
    assert waiting(one).times("s-") == [20.0, 20.0]


def test_r8_easy_withdraws_the_expected_start() -> None:
    assert starts(queued(until="120s").obj("Pod", "head")) is None


def test_r8_easy_and_reserve_agree_about_one_that_is_first_and_starves() -> None:
    one = m.job("vip", m.role("w", 4, 1, cpu=2, run_time="44s", priority="high"), at="28s", priority="high")
    one["spec"]["tasks"][0]["template"]["metadata"]["annotations"][RUN_TIME] = "50s"
    answer = simulate(
        m.priority_class("high", 1000),
        m.node("n", 4),
        m.node("m", 3),
        one,
        timed("a", 2, "50s", "23s", at="13s", priority="high"),
        m.pod("waits", 2, at="30s", run_time="9s"),
        config=reserving(5, mode="easy"),
    )
    assert answer.at("waits") == 72.0, "when those of higher priority have ended"


def test_r8_a_job_of_unknown_run_time_does_not_keep_its_like_out() -> None:
    """Both ask for the same; only the second ends in time."""
    endless, short = m.job("a", m.role("w", 2), at="20s"), m.job("s", m.role("w", 2, run_time="60s"), at="21s")
    short["metadata"]["annotations"][RUN_TIME] = "70s"
    answer = waiting(endless, short)
    assert answer.times("s-") == [21.0, 21.0]


def test_r8_easy_room_that_the_first_will_not_need_any_more_is_for_those_behind() -> None:
    """`tiny` goes, and `head` is expected on its node, at the same instant. So `s` may use the other one."""
    ahead = [timed("a", 3, "100s", nodeName="n"), timed("b", 2, "100s", nodeName="o")]
    tiny = m.pod("tiny", 1, nodeName="n", delete_at="20s")
    answer = simulate(
        m.node("n"), m.node("o"), ahead, tiny, m.pod("head", 4, at="1s"), m.pod("s", 2, at="2s"), config=EASY
    )
    assert answer.bound("s") == {"s": (20.0, "o")}
    assert answer.at("head") == 100.0


def test_r8_an_expected_start_that_another_node_has_too_stays_published() -> None:
    """The reserved node goes, and at the same instant another one is reserved that is free just then."""
    lost = [m.step("50s", "delete", "Node", "m")]
    for more in ([], lost):
        answer = simulate(
            m.node("n"),
            m.node("m"),
            timed("a", 3, "100s"),
            timed("b", 3, "100s"),
            m.pod("big", 4),
            more,
            config=reserving(percent=50),
            until="60s",
        )
        assert [line["node"] for line in answer.lines("reserved", "big")][-1] == ("n" if more else "m")
        assert starts(answer.obj("Pod", "big")) == "2026-01-01T00:01:40Z"


# ---- conservative backfill, with several queues

CONSERVATIVE: m.Obj = {
    "actions": [{"name": "allocate"}, {"name": "backfill", "arguments": {"mode": "conservative"}}],
}


def test_r8_a_plan_counts_what_another_queue_bound_in_the_same_cycle() -> None:
    """`a2` (queue a) could have x at 100s, if `other` (queue b) had not just been bound there until 1000s: it is
    planned on y at 200s, which `a3` must not delay; it starts on x when `a1` ends."""
    on_x, on_y = ({"nodeSelector": {"kubernetes.io/hostname": name}} for name in "xy")
    answer = simulate(
        m.node("x"),
        m.node("y"),
        m.queue("a"),
        m.queue("b"),
        timed("running", 2, "200s", **on_y),
        timed("a1", 2, "90s", at="10s", queue="a", **on_x),
        timed("other", 2, "990s", at="10s", queue="b", **on_x),
        timed("a2", 4, "50s", at="10s", queue="a"),
        timed("a3", 2, "500s", at="10s", queue="a"),
        config=CONSERVATIVE,
    )
    assert [answer.at(name) for name in ("a1", "other", "a2", "a3")] == [10.0, 10.0, 200.0, 100.0]


@pytest.mark.parametrize("second", [1, "500m"])
def test_r8_easy_a_gang_takes_no_room_of_the_first_twice(second: Any) -> None:
    """The head leaves 1 cpu of n2 to gangs behind it: the second pod of an attempt does not get it again."""
    hostname = "kubernetes.io/hostname"
    answer = simulate(
        [m.node(name, 4, labels={hostname: name}) for name in ("n1", "n2")],
        timed("ahead", 4, "100s", nodeSelector={hostname: "n1"}),
        m.gang("head", 2, cpu=3, at="1s", run_time="10s"),
        m.podgroup("behind", 2, at="2s"),
        [m.pod(f"behind-{i}", cpu, group="behind", at="2s") for i, cpu in enumerate((1, second))],
        config=EASY,
    )
    assert answer.times("head") == [100.0, 100.0]
    assert answer.times("behind") == [100.0, 100.0]


def test_r8_g2_conservative_a_gang_that_must_be_packed_starts() -> None:
    """Two pods of 2 CPUs on x and one of 3 on y is the only way; no plan of another gang is in the way."""
    gang = m.job("j", m.role("a", 2, cpu=2), m.role("b", 1, cpu=3, priorityClassName="low"))
    answer = simulate(m.priority_class("low", -1), m.node("x", 4), m.node("y", 3), gang, config=CONSERVATIVE)
    assert answer.times("j-") == [0.0] * 3


def test_r8_g10_conservative_the_answer_of_sim_counts_what_gangs_before_it_are_planned_to_use() -> None:
    """`first` is planned to start at 10 s on all 4 CPUs: none of the 2 that are free now is left to `behind`."""
    answer = simulate(
        m.node("n", 4),
        timed("ahead", 2, "10s"),
        m.pod("first", 4, at="1s"),
        m.gang("behind", 3, at="2s"),
        config=CONSERVATIVE,
        until="5s",
    )
    assert sum(answer.pending("default/first")["missing"].values()) == 1
    assert sum(answer.pending("default/behind")["missing"].values()) == 3
