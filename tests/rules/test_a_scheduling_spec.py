"""A1, A2, V5: kube-arbitrator's SchedulingSpec, through whole simulations."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.config import parse
from enbloc.engine.decisions import Waits
from enbloc.units import SECOND
from support import manifests as m
from support.advised import advised
from support.answers import waits_because
from support.direct_scheduler import DirectScheduler
from support.simulation import NO_BACKFILL, NO_EVICTIONS, simulate

REQUIRE = {"arbitrator": {"requireSchedulingSpec": True}}
REPLICA_SET = m.crdjob_owner("rs", "u-rs", "ReplicaSet", "apps/v1")


# ---- A1


@pytest.mark.parametrize("scheduler", ["enbloc", "kar-scheduler"])
def test_a1_an_unknown_kind(scheduler: str) -> None:
    answer = simulate(
        m.CRDJOB_DEFINITION,
        m.crdjob(),
        m.node("n", 2),
        m.owned(*m.pods(3, "c", scheduler=scheduler)),
        m.scheduling_spec("c", 3),
        m.node("m", 1, at="20s"),
    )
    assert answer.times("c") == [20.0] * 3
    reported = waits_because(
        simulate(m.node("n", 2), m.owned(*m.pods(3, "c")), m.scheduling_spec("c", 3)).obj("SchedulingSpec", "c")
    )
    assert reported == "1 of 3 pods does not fit: 0/1 nodes are available: 1 Insufficient cpu."


def test_a1_the_title_is_what_the_user_wrote() -> None:
    answer = simulate(m.node("n", 1), m.owned(*m.pods(2, "c")), m.scheduling_spec("some-spec", 2))
    (found,) = answer.data["pending"]
    assert (found["gang"], found["dialect"], found["missing"]) == ("default/c", "arbitrator", {"": 1})


def test_a1_a_spec_that_comes_late_pulls_its_pods_in() -> None:
    waiting = m.owned(*m.pods(3, "c", scheduler="kar-scheduler"))
    answer = simulate(m.CRDJOB_DEFINITION, m.crdjob(), m.node("n"), waiting, m.scheduling_spec("c", 3, at="12s"))
    assert answer.times("c") == [12.0] * 3
    bound = simulate(
        m.node("n", 2), m.owned(*m.pods(3, "c")), m.scheduling_spec("c", 3, at="12s"), m.node("m", at="20s")
    )
    assert bound.times("c") == [0.0, 0.0, 20.0]  # two ran as ordinary pods; the third completes the gang
    reported = simulate(
        m.node("n", 2), m.owned(*m.pods(4, "c")), m.scheduling_spec("c", 4, at="12s"), m.node("m", 1, at="20s")
    )
    assert reported.times("c") == [0.0, 0.0]  # the two that lack start together
    assert "1 of 2 pods does not fit" in reported.why("default/c")


def test_a1_the_same_owner_is_one_of_the_same_uid() -> None:
    answer = simulate(
        m.node("n", 8),
        m.owned(*m.pods(2, "one"), by=m.crdjob_owner("c", "u-1")),
        m.owned(*m.pods(2, "two"), by=m.crdjob_owner("c", "u-2")),
        m.scheduling_spec("one", 3, by=m.crdjob_owner("c", "u-1")),
        m.scheduling_spec("two", 2, by=m.crdjob_owner("c", "u-2")),
    )
    assert sorted(answer.bound()) == ["two0", "two1"]
    assert "2 of 3 pods exist, 1 more is needed" in answer.why("default/c")


def test_a1_an_owner_that_is_no_controller_owns_nothing() -> None:
    other = m.crdjob_owner() | {"controller": False}
    answer = simulate(m.node("n", 1), m.owned(*m.pods(2, "c"), by=other), m.scheduling_spec("c", 2))
    assert sorted(answer.bound()) == ["c0"]


def test_a1_no_spec_pods_for_kar_scheduler_wait() -> None:
    answer = simulate(
        m.node("n", 8),
        m.owned(*m.pods(2, "c", scheduler="kar-scheduler")),
        m.pod("lone", scheduler="kar-scheduler"),
        m.owned(*m.pods(2, "free"), by=m.crdjob_owner("f", "u-f")),
    )
    assert sorted(answer.bound()) == ["free0", "free1"]
    assert waits_because(answer.obj("Pod", "c0")) == "SchedulingSpec of CRDJob default/c does not exist"
    assert answer.why("default/c") == "SchedulingSpec of CRDJob default/c does not exist"
    assert "SchedulingSpec of Pod default/lone does not exist" in answer.why("default/lone")


def test_a1_require_scheduling_spec_but_not_of_what_is_built_in() -> None:
    docs = [
        m.node("n", 8),
        *m.owned(m.pod("c")),
        *m.owned(m.pod("rs"), by=REPLICA_SET),
        m.pod("bare"),
        *m.owned(m.pod("v", group="g")),
        m.podgroup("g", 1),
    ]
    assert sorted(simulate(docs).bound()) == ["bare", "c", "rs", "v"]
    answer = simulate(docs, config=REQUIRE)
    assert sorted(answer.bound()) == ["bare", "rs", "v"]
    assert answer.why("default/c") == "SchedulingSpec of CRDJob default/c does not exist"
    assert simulate(docs, m.scheduling_spec("c", 1, at="5s"), config=REQUIRE).at("c") == 5.0


def test_a1_volcano_goes_first() -> None:
    answer = simulate(
        m.node("n", 8), m.owned(*m.pods(2, "c", group="g")), m.podgroup("g", 2), m.scheduling_spec("c", 5)
    )
    assert sorted(answer.bound()) == ["c0", "c1"]


def test_a1_priority_is_the_specs_own() -> None:
    classes = [m.priority_class("high", 100), m.priority_class("mid", 50)]
    low, high = m.crdjob_owner("low", "u-low"), m.crdjob_owner("high", "u-high")
    answer = simulate(
        classes,
        m.node("n", 2, at="5s"),
        m.owned(*m.pods(2, "low", priority="mid"), by=low),
        m.scheduling_spec("low", 2, by=low),
        m.owned(*m.pods(2, "high"), by=high),
        m.scheduling_spec("high", 2, by=high, priorityClassName="high"),
    )
    assert sorted(answer.bound()) == ["high0", "high1"]
    assert answer.obj("SchedulingSpec", "high")["spec"]["priority"] == 100


def test_a1_a_differing_priority_is_refused() -> None:
    answer = simulate(
        m.priority_class("high", 100),
        m.scheduling_spec("a", 1, priorityClassName="high", priority=7),
        m.scheduling_spec("b", 1, priority=7),
        m.scheduling_spec("c", 1, priorityClassName="system-node-critical"),
    )
    refused = {line["name"]: line["message"] for line in answer.lines("rejected")}
    assert refused == {
        "a": "spec.priority: 7 differs: priority class 'high' has 100",
        "b": "spec.priority: 7 differs: without a priority class it is 0",
    }
    assert answer.obj("SchedulingSpec", "c")["spec"]["priority"] == 2_000_001_000
    default = simulate(m.priority_class("usual", 30, default=True), m.scheduling_spec("a", 1))
    assert default.obj("SchedulingSpec", "a")["spec"]["priority"] == 30


def test_a1_a_spec_without_an_owner_says_so() -> None:
    answer = simulate(m.node("n"), m.scheduling_spec("a", 2, by={}))
    assert "no controlling owner" in answer.why("default/a")
    assert "no controlling owner" in waits_because(answer.obj("SchedulingSpec", "a"))


def test_a1_of_two_specs_the_older_counts() -> None:
    answer = simulate(
        m.node("n", 2),
        m.owned(*m.pods(2, "c")),
        m.scheduling_spec("z", 2),
        m.scheduling_spec("a", 3, at="5s"),
        m.restart("10s"),
    )
    assert answer.times("c") == [0.0, 0.0]


@pytest.mark.parametrize("again", [[], [m.restart("12s")], [m.restart("12s"), m.restart("17s")]])
def test_v5_a_spec_that_went_what_runs_runs_on_what_waits_says_so(again: list[m.Obj]) -> None:
    docs = [
        m.node("n", 2),
        *m.owned(*m.pods(3, "c", run_time="60s")),
        m.scheduling_spec("c", 2),
        m.step("10s", "delete", "SchedulingSpec", "c"),
        m.node("m", at="15s"),
    ]
    answer = simulate(docs, again)
    assert sorted(answer.bound()) == ["c0", "c1"]
    assert answer.at("c0", "succeeded") == 60.0
    assert not answer.lines("evicted")
    assert waits_because(answer.obj("Pod", "c2")) == "SchedulingSpec of CRDJob default/c does not exist"
    later = simulate(docs, again, m.owned(m.pod("c3", at="18s")), m.scheduling_spec("d", 2, at="30s"))
    assert later.times("c") == [0.0, 0.0, 30.0, 30.0]


@pytest.mark.parametrize("again", [[], [m.restart("12s")]])
def test_v5_a_spec_that_went_when_no_pod_waited(again: list[m.Obj]) -> None:
    answer = simulate(
        m.node("n"),
        m.owned(*m.pods(2, "c")),
        m.scheduling_spec("c", 2),
        m.step("10s", "delete", "SchedulingSpec", "c"),
        again,
        m.owned(m.pod("c2", at="15s")),
    )
    assert answer.at("c2") == 15.0


def test_a1_a_queue_is_named_by_annotation() -> None:
    small = m.queue("small", capability={"cpu": "1"})
    spec = m.scheduling_spec("c", 2)
    spec["metadata"]["annotations"] = {"volcano.sh/queue-name": "small"}
    answer = simulate(small, m.node("n"), m.owned(*m.pods(2, "c")), spec)
    assert "queue small" in answer.why("default/c")
    job = m.queue_job("q", m.role("w", 2), annotations={"volcano.sh/queue-name": "small"})
    assert "queue small" in simulate(small, m.node("n"), job).why("default/q")


# ---- A2


def test_a2_the_node_selector_counts_for_all_pods() -> None:
    answer = simulate(
        m.node("n", 8),
        m.node("m", 2, labels={"disk": "ssd"}),
        m.owned(*m.pods(3, "c")),
        m.scheduling_spec("c", 3, nodeSelector={"disk": "ssd"}),
        m.node("l", 1, labels={"disk": "ssd"}, at="10s"),
    )
    assert set(answer.bound("c").values()) == {(10.0, "m"), (10.0, "l")}
    job = m.queue_job("q", m.role("w", 2), nodeSelector={"disk": "ssd"})
    assert {at for _, at in simulate(m.node("n"), m.node("m", labels={"disk": "ssd"}), job).bound().values()} == {"m"}


def test_a2_its_partial_allocation_goes_to_no_other_gang_without_backfill() -> None:
    docs = [
        m.node("n", 4),
        *m.owned(*m.pods(5, "big")),
        m.scheduling_spec("c", 5),
        m.pod("small", at="5s"),
        m.pod("later", at="30s"),
    ]
    assert sorted(simulate(docs).bound()) == ["later", "small"]
    kept = simulate(docs, config=NO_BACKFILL)
    assert not kept.bound()
    said = {one["metadata"]["name"]: waits_because(one) for one in kept.all("Pod")}
    assert all("room that is set aside for default/c" in said.pop(name) for name in ("small", "later"))
    assert all("Insufficient cpu" in text for text in said.values())
    assert len(kept.lines("warning", kind="SchedulingSpec")) == 1
    assert simulate(docs, m.restart("20s"), config=NO_BACKFILL).bound() == {}


def test_a2_g10_gangs_behind_it_say_for_which_gang_the_room_is_set_aside() -> None:
    """Also on an empty node; a node that is too small, or full, is no such node. Without that gang it would start."""
    docs = [
        m.node("n", 3),
        m.node("tiny", 1),
        m.node("busy", 2),
        m.pod("x", 1, nodeName="busy"),
        *m.owned(*m.pods(5, "c", 2)),
        m.scheduling_spec("c", 5),
        m.pod("small", 2, at="1s"),
    ]
    answer = advised(docs, config=NO_BACKFILL, until="9s")
    found = answer.pending("default/small")
    assert {(one["reason"], one["nodes"]) for one in found["reasons"]} == {
        ("node(s) have room that is set aside for default/c", 1),
        ("Insufficient cpu", 2),
    }
    assert "delete default/c, which waits too" in [one["change"] for one in found["remedies"]]
    assert "set aside" not in simulate(docs, config=NO_EVICTIONS, until="9s").why("default/small")


def test_s7_a2_the_gang_is_not_named_to_another_namespace() -> None:
    docs = [m.node("n", 3), *m.owned(*m.pods(5, "c", 1)), m.scheduling_spec("c", 5)]
    small = m.pod("small", 1, at="1s", namespace="other")
    answer = simulate(docs, small, config={**NO_BACKFILL, "tenancy": "isolated"}, until="9s")
    assert "set aside for a gang of another namespace" in answer.why("other/small")


def test_a2_g10_gangs_behind_it_count_what_it_keeps_as_used() -> None:
    """Three cpu are free, one of which `c` keeps: two of the four pods of `g` have room."""
    answer = simulate(
        m.node("n", 3, "4Gi"),
        m.owned(*m.pods(2, "big", 1, memory="4Gi")),
        m.scheduling_spec("c", 2),
        m.gang("g", 4, at="5s"),
        config=NO_BACKFILL,
    )
    assert answer.pending("default/g")["missing"] == {"": 2}
    assert "2 of 4 pods" in waits_because(answer.obj("PodGroup", "g"))
    assert "2 of 4 pods" in answer.why("default/g")


def test_a2_only_what_it_got_is_kept() -> None:
    docs = [
        m.node("n", 3),
        m.node("m", 1),
        *m.owned(*m.pods(2, "big", 2)),
        m.scheduling_spec("c", 2),
        *m.pods(3, "p", at="5s"),
    ]
    answer = simulate(docs, config=NO_BACKFILL)
    assert len(answer.bound("p")) == 2  # one big pod has a place on n; what is left of n, and m, are free
    assert not answer.bound("big")


@pytest.mark.parametrize(
    "what",
    [m.step("20s", "delete", "SchedulingSpec", "c"), m.step("20s", "patch", "SchedulingSpec", "c", patch={"spec": {}})],
)
def test_a2_those_it_stood_in_the_way_of_are_woken(what: m.Obj) -> None:
    docs = [m.node("n", 4), *m.owned(*m.pods(5, "big")), m.scheduling_spec("c", 5), m.pod("small", at="5s"), what]
    gone = [m.step("20s", "delete", "Pod", f"big{index}") for index in range(5)]
    assert simulate(docs, gone, config=NO_BACKFILL).at("small") == 20.0
    grown = simulate(docs[:-1], m.node("m", 2, at="40s"), config=NO_BACKFILL)
    assert grown.times("big") == [40.0] * 5
    assert grown.at("small") == 40.0


@pytest.mark.parametrize(("minimum", "starts"), [(3, True), (6, False)])
def test_a2_r5_what_it_got_and_nodes_reserved_for_a_lower_gang(minimum: int, starts: bool) -> None:
    """Two of its pods get a place on `m`, and one more on `n`, which is reserved for `low`: it starts whole, or not."""
    arguments = {"starvingJobTimeThreshold": 10, "reservedNodePercent": 50}
    config = {"actions": [{"name": "allocate"}, {"name": "reserve", "arguments": arguments}]}
    answer = simulate(
        m.priority_class("high", 100),
        m.node("n", 4),
        m.node("m", 2),
        m.pod("runs", 3, run_time="100s"),
        m.podgroup("low", 1, at="1s"),
        m.pod("low-0", 4, group="low", at="1s", run_time="10s"),
        m.owned(*m.pods(minimum, "c", at="20s", priority="high")),
        m.scheduling_spec("c", minimum, at="20s"),
        config=config,
        until="60s",
    )
    assert {line["node"] for line in answer.lines("reserved", name="low-0")} == {"n"}
    assert sorted(node for _, node in answer.bound("c").values()) == (["m", "m", "n"] if starts else [])
    assert answer.data["ended"] != "cut-off"


def test_a2_what_it_got_does_not_hide_what_it_needs_from_others_actions() -> None:
    """Two of its pods are needed, and one has a place within its queue. Nodes are reserved for all of it or not."""
    arguments = {"starvingJobTimeThreshold": 1, "reservedNodePercent": 100}
    config = {"actions": [{"name": "allocate"}, {"name": "reserve", "arguments": arguments}]}
    others = [m.queue(name, guarantee={"cpu": "1"}) for name in "ab"]
    answer = simulate(m.node("n", 3), others, m.queue_job("q", m.role("w", 2), minimum=2), config=config, until="10s")
    assert not answer.bound()
    assert not answer.lines("reserved")


LEFT_BEHIND = {"metadata": {"ownerReferences": None}}


def test_v5_a_pod_that_its_owner_left_behind_is_no_business_of_the_owners_scheduling_spec() -> None:
    """What was known of the pod when it was left behind came back when the SchedulingSpec went, though it was gone."""
    answer = simulate(
        m.CRDJOB_DEFINITION,
        m.node("n", 2),
        m.crdjob(),
        m.scheduling_spec(minimum=1),
        m.owned(m.pod("c-0")),
        m.step("1s", "patch", "Pod", "c-0", patch=LEFT_BEHIND),
        m.step("2s", "delete", "Pod", "c-0"),
        m.step("3s", "delete", "SchedulingSpec", "c"),
        m.pod("big", 2, at="4s"),
        until="5s",
    )
    assert answer.at("c-0") == 0.0
    assert answer.at("big") == 4.0


def test_v5_a_scheduling_spec_without_owner_counts_for_no_pod() -> None:
    docs: list[Any] = [
        m.CRDJOB_DEFINITION,
        m.node("n"),
        m.crdjob(),
        m.scheduling_spec(minimum=3),
        *m.owned(m.pod("c-0", at="2s")),
        m.step("1s", "patch", "SchedulingSpec", "c", patch=LEFT_BEHIND),
    ]
    for more in ([], [m.restart("3s")]):
        answer = simulate(*docs, *more)
        assert answer.at("c-0") == 2.0, "no SchedulingSpec is for it"


def test_a2_a_job_that_keeps_what_it_got_says_why_it_waits_as_its_pods_do() -> None:
    docs = [m.CRDJOB_DEFINITION, m.node("n", 2), m.crdjob(), m.scheduling_spec(minimum=3), *m.owned(*m.pods(3, "c-"))]
    answer = simulate(*docs, config=NO_BACKFILL)
    for one in (answer.obj("SchedulingSpec", "c"), *answer.all("Pod")):
        assert "Insufficient cpu" in waits_because(one)


def test_a2_g10_a_job_that_keeps_what_it_got_says_so_once_and_not_at_each_attempt() -> None:
    direct = DirectScheduler(parse(NO_BACKFILL))
    pods = m.owned(*m.pods(3, "c-"))
    for one in (m.node("n", 2), m.crdjob(), m.scheduling_spec(minimum=3), *pods):
        direct.put(one)
    said = [one for one in direct.engine.run(0) if isinstance(one, Waits)]
    assert [len(one.pods) for one in said] == [3], "with the pods that had a place until the others had their turn"
    direct.engine.force()
    assert direct.engine.run(SECOND) == []
