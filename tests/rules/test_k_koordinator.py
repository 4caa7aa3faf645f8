"""Koordinator's gangs as they are declared, read, started and timed out (K1–K5, K7–K11, K13)."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer, condition, waits_because
from support.simulation import simulate

GROUP = ["default/a", "default/b"]


def together(answer: Answer, *prefixes: str) -> float | None:
    """The one instant at which all pods were bound; `None` if none was."""
    found = {at for prefix in prefixes for at in answer.times(prefix)}
    assert len(found) <= 1, f"bound at {sorted(found)}"
    return found.pop() if found else None


def warnings(answer: Answer, name: str = "") -> list[str]:
    return [line["message"] for line in answer.lines("warning", name) if line["message"].startswith("BadValue")]


# ---- K1


@pytest.mark.parametrize(
    "members",
    [
        [m.pod(f"a-{i}", annotations=m.koordinator_annotations("a", 3)) for i in range(3)],
        [m.pod(f"a-{i}", labels={m.KOORDINATOR + "name": "a", m.KOORDINATOR + "min-available": "3"}) for i in range(3)],
        [m.pod(f"a-{i}", annotations={m.SIGS_LABEL: "a", m.SIGS_LABEL + "/min-available": "3"}) for i in range(3)],
        [
            m.pod(f"a-{i}", annotations={m.SIGS_LABEL + "/name": "a", m.SIGS_LABEL + "/min-available": "3"})
            for i in range(3)
        ],
        [m.sigs_podgroup("a", 3), *m.labelled_pods("a", 3)],
        [m.sigs_podgroup("a", 3, api=m.PLUGINS), *m.labelled_pods("a", 3, m.PLUGINS_LABEL)],
        [m.sigs_podgroup("a", 3, api=m.PLUGINS), *m.labelled_pods("a", 3)],
        [m.sigs_podgroup("a", 3), *(m.pod(f"a-{i}", annotations={m.SIGS_LABEL: "a"}) for i in range(3))],
        [m.native_podgroup("a", {"gang": {"minCount": 3}}), *m.native_pods("a", 3)],
        [m.native_podgroup("a", {"gang": {"minCount": 3}}, "v1alpha2"), *m.native_pods("a", 3)],
    ],
    ids=[
        "annotations",
        "labels",
        "old keys",
        "old names",
        "sigs",
        "plugins",
        "either label",
        "by note",
        "v1beta1",
        "alpha",
    ],
)
def test_k1_ways_to_declare_a_gang(members: list[m.Obj]) -> None:
    answer = simulate(m.node("n", 2), members, m.node("late", 1, at="30s"))
    assert together(answer, "a-") == 30.0
    assert len(answer.bound("a-")) == 3
    assert not warnings(answer)


def test_k1_total_number_is_shown_and_starts_nothing() -> None:
    answer = simulate(m.node("n"), m.koordinator_gang("a", 2, 3, total=7))
    assert "7 expected" in answer.why("default/a")
    assert together(simulate(m.node("n", 8), m.koordinator_gang("a", 3, 3, total=7)), "a-") == 0.0


def test_k1_groups_may_be_a_comma_list_and_gang_groups_is_an_alias() -> None:
    said = {**m.koordinator_annotations("a", 1), m.KOORDINATOR + "gang-groups": "default/a, default/b"}
    answer = simulate(m.node("n"), m.pod("a-0", annotations=said), m.koordinator_gang("b", 1, groups=GROUP, at="5s"))
    assert together(answer, "a-", "b-") == 5.0


def test_k1_the_dialect_is_named() -> None:
    waits = simulate(
        m.koordinator_gang("a", 1),
        [m.sigs_podgroup("b", 1, api=m.PLUGINS), *m.labelled_pods("b", 1)],
        m.native_podgroup("c", {"gang": {"minCount": 1}}),
        m.native_pods("c", 1),
    )
    found = {one["gang"]: one["dialect"] for one in waits.data["pending"]}
    assert found == {"default/a": "koordinator", "default/b": "coscheduling", "default/c": "kubernetes"}


def test_a_basic_policy_goes_one_by_one_and_both_policies_are_refused() -> None:
    answer = simulate(m.node("n", 2), m.native_podgroup("a", {"basic": {}}), m.native_pods("a", 3))
    assert len(answer.bound("a-")) == 2
    answer = simulate(
        m.node("n", 4), m.native_podgroup("a", {"basic": {}, "gang": {"minCount": 1}}), m.native_pods("a", 1)
    )
    assert "both" in answer.rejected("a")


# ---- K2, K3, K4


def test_k2_the_annotation_wins() -> None:
    members = [
        m.pod(f"a-{i}", labels={m.SIGS_LABEL: "a"}, annotations={m.KOORDINATOR + "min-available": "2"})
        for i in range(2)
    ]
    assert together(simulate(m.node("n", 2), m.sigs_podgroup("a", 5), members), "a-") == 0.0


@pytest.mark.parametrize(
    "words, starts",
    [
        ({"mode": "Sloppy"}, True),
        ({"wait": "soon"}, True),
        ({"wait": "-5s"}, True),
        ({"wait": "0s"}, True),
        ({"total": 1}, True),
        ({"total": "many"}, True),
        ({"groups": "[1, 2]"}, True),
        ({"groups": "nonsense"}, True),
        ({"groups": '["default/x"'}, True),
        ({"groups": "{}"}, True),
        ({"groups": "[" * 5000}, True),
        ({"policy": "never"}, True),
        ({"minimum": "two"}, False),
        ({"minimum": "-1"}, False),
        ({"minimum": "99999999999"}, False),
        ({"minimum": "4294967297"}, False),
        ({"minimum": ""}, False),
    ],
)
def test_k3_bad_values_are_reported_and_stop_no_gang(words: dict[str, Any], starts: bool) -> None:
    minimum = words.get("minimum", 2)
    rest = {key: value for key, value in words.items() if key != "minimum"}
    answer = simulate(m.node("n", 8), m.koordinator_gang("a", 2, minimum, **rest), m.koordinator_gang("b", 2))
    assert together(answer, "b-") == 0.0
    assert bool(answer.bound("a-")) == starts
    assert warnings(answer, "a-0")
    assert warnings(answer, "a-1")
    if not starts:
        assert "min-available" in answer.why("default/a")


@pytest.mark.parametrize("name", ["Gang_A", "-a", "a/b", "ä", "a" * 300])
def test_k3_a_name_that_is_none_is_not_initialised(name: str) -> None:
    members = [m.pod(f"a-{i}", annotations=m.koordinator_annotations(name, 2)) for i in range(2)]
    answer = simulate(m.node("n", 8), members, m.koordinator_gang("b", 1))
    assert not answer.bound("a-")
    assert answer.bound("b-")
    assert warnings(answer, "a-0")
    assert "RFC 1123" in waits_because(answer.obj("Pod", "a-0"))


def test_k3_the_oldest_pod_with_a_good_value_counts() -> None:
    oldest, second = (
        m.pod("a-0", annotations=m.koordinator_annotations("a", "bad")),
        m.pod("a-1", at="1s", annotations=m.koordinator_annotations("a", 2)),
    )
    answer = simulate(
        m.node("n", 8), oldest, second, m.pod("a-2", at="2s", annotations=m.koordinator_annotations("a", 3))
    )
    assert answer.bound("a-")
    assert answer.at("a-0") == 1.0
    later = m.pod("b-1", at="1s", annotations=m.koordinator_annotations("b", 5))
    answer = simulate(m.node("n", 1), m.pod("b-0", annotations=m.koordinator_annotations("b", 2)), later)
    assert any("disagree" in reported for reported in warnings(answer, "b-1"))


def test_k3_the_oldest_pod_counts_within_a_second_too() -> None:
    ages = {"1s": 3, "1500ms": 2}
    pods = [m.pod(f"a-{at}", at=at, annotations=m.koordinator_annotations("a", low)) for at, low in ages.items()]
    answer = simulate(m.node("n", 8), pods)
    assert not answer.bound("a-")
    assert "2 of 3 pods exist" in answer.why("default/a")


def test_k3_a_minimum_of_0_keeps_no_pod_waiting() -> None:
    assert len(simulate(m.node("n", 2), m.koordinator_gang("a", 3, 0)).bound("a-")) == 2


def test_k3_bad_numbers_of_a_pod_group_are_reported() -> None:
    for minimum in (-1, 2**31, 2**62):
        answer = simulate(m.node("n"), m.sigs_podgroup("a", minimum), m.labelled_pods("a", 1))
        assert not answer.bound()
        assert warnings(answer, "a")
    answer = simulate(m.node("n"), m.sigs_podgroup("a", 1, scheduleTimeoutSeconds=-4), m.labelled_pods("a", 1))
    assert answer.bound()
    assert warnings(answer, "a")


def test_k4_early_pods_wait_for_their_pod_group() -> None:
    for api, label in (("scheduling.sigs.k8s.io/v1alpha1", m.SIGS_LABEL), (m.PLUGINS, m.PLUGINS_LABEL)):
        answer = simulate(m.node("n"), m.labelled_pods("a", 2, label), m.sigs_podgroup("a", 2, api=api, at="12s"))
        assert together(answer, "a-") == 12.0
    assert "does not exist" in simulate(m.node("n"), m.labelled_pods("a", 1)).why("default/a")
    assert "does not exist" in simulate(m.node("n"), m.native_pods("a", 1)).why("default/a")


def test_a_pod_group_recreated_with_other_numbers_while_its_pods_wait() -> None:
    answer = simulate(
        m.node("n", 2),
        m.sigs_podgroup("a", 5, delete_at="10s"),
        m.labelled_pods("a", 2),
        m.step("20s", "create", object=m.sigs_podgroup("a", 2)),
    )
    assert together(answer, "a-") == 20.0


def test_a_pod_that_speaks_several_dialects_has_one_gang_and_is_warned() -> None:
    both = [m.pod(f"a-{i}", group="v", annotations=m.koordinator_annotations("k", 5)) for i in range(2)]
    answer = simulate(m.node("n", 4), m.gang("v", 0, minimum=2), both)
    assert together(answer, "a-") == 0.0
    assert any("several" in reported for reported in warnings(answer, "a-0"))


# ---- K5, K7


def test_k5_k7_a_group_starts_together_or_not_at_all() -> None:
    answer = simulate(
        m.node("n", 4),
        m.koordinator_gang("a", 2, groups=GROUP),
        m.koordinator_gang("b", 3, groups=GROUP, at="5s"),
        m.pod("s", 4, at="6s", run_time="4s"),
        m.node("late", 1, at="30s"),
    )
    assert answer.at("s") == 6.0, "a Strict group holds nothing"
    assert together(answer, "a-", "b-") == 30.0
    assert not answer.lines("held")


def test_k7_a_group_crosses_namespaces_and_dialects_of_pod_group() -> None:
    group = ["default/a", "other/b"]
    far = [
        m.pod(f"b-{i}", namespace="other", annotations=m.koordinator_annotations("b", 2, groups=group))
        for i in range(2)
    ]
    answer = simulate(
        m.node("n", 3), m.sigs_podgroup("a", 2, groups=group), m.labelled_pods("a", 2), far, m.node("late", 1, at="9s")
    )
    assert together(answer, "a-", "b-") == 9.0


def test_k7_gangs_that_reach_each_other_through_names_start_together_and_disagreement_is_reported() -> None:
    circle = [
        m.koordinator_gang("a", 1, groups=["default/b"]),
        m.koordinator_gang("b", 1, groups=["default/c"]),
        m.koordinator_gang("c", 1, groups=["default/a"]),
    ]
    answer = simulate(m.node("n", 2), *circle, m.node("late", 1, at="7s"))
    assert together(answer, "a-", "b-", "c-") == 7.0
    assert any("disagree" in reported for reported in warnings(answer))


def test_k7_a_gang_that_names_one_outside_its_group_waits_until_that_one_is_satisfied() -> None:
    """`a` names `b`, which names `c`, which names none: `c` starts first, and none waits for `a`."""
    chain = [
        m.koordinator_gang("a", 1, groups=["default/b"]),
        m.koordinator_gang("b", 1, groups=["default/c"], at="3s"),
        m.koordinator_gang("c", 2, at="1s"),
    ]
    answer = simulate(m.node("n", 1), *chain, m.node("late", 2, at="7s"), m.node("last", 1, at="9s"))
    assert together(answer, "c-") == 7.0
    assert answer.at("b-0") == 7.0
    assert answer.at("a-0") == 9.0
    assert any("which does not name it" in reported for reported in warnings(answer, "a-0"))
    assert not warnings(answer, "c-0")
    answer = simulate(m.node("n", 1), *chain, until="5s")
    assert "default/b, which it names, is not satisfied yet" in answer.why("default/a")
    assert "does not fit" in answer.why("default/c")


def test_k7_no_disagreement_is_reported_of_a_gang_whose_pod_group_has_not_come() -> None:
    answer = simulate(
        m.node("n", 1),
        m.koordinator_gang("a", 1, groups=GROUP),
        m.labelled_pods("b", 1),
        m.sigs_podgroup("b", 1, groups=GROUP, at="5s"),
        m.node("late", 1, at="9s"),
    )
    assert not warnings(answer)
    assert together(answer, "a-", "b-") == 9.0


@pytest.mark.parametrize("ends", ["deleted", "restart"])
def test_k7_a_gang_that_was_awaited_and_goes_is_awaited_again(ends: str) -> None:
    """Until `a` has started, what it names must be satisfied; a restart of the scheduler makes no difference."""
    more = [m.restart("6s")] if ends == "restart" else [m.step("6s", "delete", "Pod", "b-0")]
    answer = simulate(
        m.node("n", 1),
        m.koordinator_gang("a", 2, groups=GROUP),
        m.koordinator_gang("b", 1, at="1s"),
        more,
        m.node("late", 4, at="9s"),
        until="20s",
    )
    assert answer.at("b-0") == 1.0
    assert together(answer, "a-") == (9.0 if ends == "restart" else None)


def test_k7_it_is_not_attempted_until_each_named_gang_exists_with_enough_members() -> None:
    answer = simulate(
        m.node("n", 8),
        m.koordinator_gang("a", 2, groups=GROUP),
        m.koordinator_gang("b", 2, 3, groups=GROUP),
        until="9s",
    )
    assert not answer.bound()
    assert "default/b" in answer.why("default/a")
    assert "1 more" in answer.why("default/b")


def test_k7_min_resources_larger_than_the_free_room_are_said() -> None:
    answer = simulate(
        m.node("n", 4),
        m.sigs_podgroup("a", 1, minResources={"cpu": "5"}),
        m.labelled_pods("a", 1),
        m.node("m", 1, at="8s"),
    )
    assert together(answer, "a-") == 8.0
    answer = simulate(m.node("n", 4), m.sigs_podgroup("a", 1, minResources={"cpu": "5"}), m.labelled_pods("a", 1))
    assert not answer.bound()
    assert "minResources" in answer.why("default/a")


@pytest.mark.parametrize("api", [m.SIGS, m.PLUGINS])
def test_k7_room_that_is_freed_for_a_group_counts_as_free_for_its_min_resources(api: str) -> None:
    classes = [m.priority_class("high", 1000)]
    answer = simulate(
        classes,
        m.node("n", 4),
        m.pod("low", 4),
        m.sigs_podgroup("a", 1, api=api, minResources={"cpu": "4"}, at="10s"),
        m.labelled_pods("a", 1, cpu=4, priority="high", at="10s"),
        m.pod("later", 4, at="20s"),
    )
    assert answer.evicted() == [(10.0, "low")]
    assert answer.at("a-0") == 10.0
    assert answer.at("later") is None


def test_k7_a_non_strict_group_accumulates_whatever_its_min_resources() -> None:
    """The example of Koordinator's own document: minResources are what all members request."""
    answer = simulate(
        m.node("n", 2),
        m.pod("busy", 2, nodeName="m"),
        m.node("m", 2),
        m.sigs_podgroup("a", 4, mode=m.NON_STRICT, minResources={"cpu": "4"}),
        m.labelled_pods("a", 4),
        m.pod("s", 1, at="5s"),
        m.step("30s", "delete", "Pod", "busy"),
        until="40s",
    )
    assert [(line["t"], line["name"]) for line in answer.lines("held")] == [(0.0, "a-0"), (0.0, "a-1")]
    assert together(answer, "a-") == 30.0


def test_k7_once_started_lost_members_come_back_one_by_one() -> None:
    answer = simulate(
        m.node("n", 4),
        m.koordinator_gang("a", 2, groups=GROUP),
        m.koordinator_gang("b", 2, groups=GROUP),
        m.step("5s", "delete", "Pod", "a-0"),
        m.pod("a-0", at="6s", annotations=m.koordinator_annotations("a", 2, groups=GROUP)),
        m.restart("7s"),
    )
    assert answer.at("a-0") == 0.0
    assert answer.bound("a-0")["a-0"][0] == 6.0
    assert not answer.lines("evicted")


def test_k7_groups_that_name_each_other_in_circles_and_ten_thousand_gangs() -> None:
    circle = [m.koordinator_gang(f"g{i}", 1, groups=[f"default/g{(i + 1) % 20}"]) for i in range(20)]
    many = m.koordinator_gang("a", 2, groups=[f"default/x{i}" for i in range(10_000)])
    answer = simulate(m.node("n", 20), *circle, many, m.koordinator_gang("b", 2, at="1s"), m.node("m", 2, at="1s"))
    assert len(answer.bound("g")) == 20
    assert together(answer, "b-") == 1.0
    assert not answer.bound("a-")


# ---- K8


def test_k8_a_strict_group_whose_gangs_do_not_come_times_out() -> None:
    late = m.koordinator_gang("b", 2, groups=GROUP, at="50s")
    answer = simulate(m.node("n", 8), m.koordinator_gang("a", 2, groups=GROUP, wait="20s"), late, until="60s")
    assert not answer.bound()
    assert {(line["t"], line["name"]) for line in answer.lines("timeout")} == {(20.0, "a-0"), (20.0, "a-1")}
    assert "timed out" in waits_because(answer.obj("Pod", "a-0"))


def test_k8_the_longest_waiting_time_of_a_group_counts() -> None:
    gangs = [
        m.koordinator_gang("a", 1, groups=GROUP, wait="10s"),
        m.koordinator_gang("b", 1, 2, groups=GROUP, wait="30s"),
    ]
    assert simulate(m.node("n"), *gangs).at("a-0", "timeout") == 30.0


@pytest.mark.parametrize("first", ["a", "b"])
def test_k8_the_longest_waiting_time_counts_in_whatever_order_the_gangs_come(first: str) -> None:
    at = {"a": None if first == "a" else "5s", "b": None if first == "b" else "5s"}
    gangs = [
        m.koordinator_gang("a", 1, groups=GROUP, wait="20s", at=at["a"]),
        m.koordinator_gang("b", 1, 2, groups=GROUP, wait="70s", at=at["b"]),
    ]
    started = 0.0 if first == "a" else 5.0  # `b` is never complete
    for more in ([], [m.restart("8s")]):
        answer = simulate(m.node("n"), *gangs, *more)
        assert {(line["t"], line["name"]) for line in answer.lines("timeout")} == {
            (started + 70.0, "a-0"),
            (started + 70.0, "b-0"),
        }


def test_k8_a_waiting_time_that_is_edited_counts_at_once() -> None:
    for wait, expected in ((40, 40.0), (12, 12.0), (3, 10.0)):
        group = m.sigs_podgroup("a", 1, groups=GROUP, scheduleTimeoutSeconds=20)
        edit = m.step("10s", "patch", "PodGroup", "a", patch={"spec": {"scheduleTimeoutSeconds": wait}})
        edit["target"]["apiVersion"] = m.SIGS
        for more in ([], [m.restart("10s")], [m.restart("11s")]):
            answer = simulate(m.node("n"), group, m.labelled_pods("a", 1), edit, *more)
            assert answer.at("a-0", "timeout") == expected, (wait, more)


def test_k8_the_earliest_start_counts_when_gangs_join() -> None:
    """Each waits for a gang that does not exist, by a clock of its own, until they name each other."""
    alone = [
        m.koordinator_gang("a", 1, groups=["default/x"], wait="20s"),
        m.koordinator_gang("b", 1, groups=["default/y"], wait="30s", at="5s"),
    ]
    group = ["default/a", "default/b", "default/x"]
    joined = m.koordinator_annotations(groups=group)
    steps = [m.patch("10s", "Pod", f"{name}-0", metadata={"annotations": joined}) for name in ("a", "b")]
    for more in ([], [m.restart("10s")], [m.restart("12s")]):
        answer = simulate(m.node("n"), *alone, *steps, *more)
        assert {(line["t"], line["name"]) for line in answer.lines("timeout")} == {(30.0, "a-0"), (30.0, "b-0")}


def test_k8_a_gang_waits_for_one_that_does_not_name_it_by_its_own_clock() -> None:
    """`b` has no room, and is not marked with `a`."""
    answer = simulate(
        m.node("n", 1), m.koordinator_gang("a", 1, groups=GROUP, wait="20s"), m.koordinator_gang("b", 2, wait="5s")
    )
    assert [(line["t"], line["name"]) for line in answer.lines("timeout")] == [(20.0, "a-0")]


def test_k8_a_complete_strict_group_without_room_waits_on() -> None:
    answer = simulate(
        m.node("n", 1),
        m.koordinator_gang("a", 1, groups=GROUP, wait="20s"),
        m.koordinator_gang("b", 1, groups=GROUP, wait="20s"),
        m.node("late", at="60s"),
    )
    assert together(answer, "a-", "b-") == 60.0


def test_k8_a_gang_of_minimum_0_that_waits_for_another_is_pending_and_times_out() -> None:
    gangs = m.koordinator_gang("a", 1, 0, groups=GROUP, wait="20s")
    answer = simulate(m.node("n"), gangs, until="10s")
    assert "default/b, which it names, does not exist" in answer.why("default/a")
    assert simulate(m.node("n"), gangs).at("a-0", "timeout") == 20.0


def test_k8_the_clock_of_a_strict_group_survives_a_restart() -> None:
    answer = simulate(m.node("n"), m.koordinator_gang("a", 1, groups=GROUP, wait="20s"), m.restart("15s"))
    assert answer.at("a-0", "timeout") == 20.0


def test_k8_marked_pods_are_scheduled_once_the_mark_is_gone_or_they_are_replaced() -> None:
    unmark = {"metadata": {"annotations": {m.KOORDINATOR + "timeout": None}}}
    more = m.node("late", 2, at="30s")
    base = (m.node("n", 1), m.koordinator_gang("a", 2, mode=m.NON_STRICT, wait="10s"), more)
    answer = simulate(*base)
    assert not answer.bound()
    answer = simulate(*base, *(m.step("40s", "patch", "Pod", f"a-{i}", patch=unmark) for i in range(2)))
    assert together(answer, "a-") == 40.0
    gone = [m.step("40s", "delete", "Pod", f"a-{i}") for i in range(2)]
    answer = simulate(*base, gone, m.koordinator_gang("a", 2, mode=m.NON_STRICT, at="50s"))
    assert together(answer, "a-") == 50.0


def test_k8_an_alone_strict_gang_without_room_waits_on() -> None:
    answer = simulate(m.node("n", 1), m.koordinator_gang("a", 2, wait="10s"), m.node("late", 1, at="2000s"))
    assert together(answer, "a-") == 2000.0


# ---- K9, K10, K11


@pytest.mark.parametrize("policy, comes_back", [(None, 6.0), ("waiting-and-running", 6.0), ("only-waiting", None)])
def test_k9_match_policies_of_a_gang_that_lost_one_member(policy: str | None, comes_back: float | None) -> None:
    words = {"policy": policy} if policy else {}
    answer = simulate(
        m.node("n", 8),
        m.koordinator_gang("a", 3, **words),
        m.step("5s", "delete", "Pod", "a-0"),
        m.koordinator_gang("a", 1, 3, at="6s", **words),
    )
    assert [line["t"] for line in answer.lines("bound", "a-0")] == [0.0] + ([comes_back] if comes_back else [])


@pytest.mark.parametrize("policy, bound", [("once-satisfied", 1), ("waiting-and-running", 0), ("only-waiting", 0)])
def test_k9_match_policies_of_a_gang_that_lost_two_and_room_for_one(policy: str, bound: int) -> None:
    lost = [m.step("5s", "delete", "Pod", f"a-{i}") for i in range(2)]
    again = m.koordinator_gang("a", 2, 3, policy=policy, at="6s")
    answer = simulate(m.node("n", 3), m.koordinator_gang("a", 3, policy=policy), lost, m.pod("s", 1, at="5s"), again)
    assert len([line for line in answer.lines("bound") if line["t"] == 6.0]) == bound


def test_k11_the_older_gang_goes_first() -> None:
    answer = simulate(
        m.node("n", 2, at="9s"),
        m.sigs_podgroup("a", 2, at="2s"),
        m.labelled_pods("a", 2, at="5s", run_time="5s"),
        m.koordinator_gang("b", 2, at="1s", run_time="5s"),
        m.sigs_podgroup("c", 2),
        m.labelled_pods("c", 2, at="6s", run_time="5s"),
    )
    assert [name[0] for name in answer.order()] == ["c", "c", "b", "b", "a", "a"]


# ---- K13


def phases(answer: Answer, name: str) -> list[str]:
    return [line["to"] for line in answer.lines("phase", name)]


def test_k13_phases_of_koordinators_pod_groups() -> None:
    answer = simulate(
        m.node("n", 1),
        m.sigs_podgroup("a", 2),
        m.labelled_pods("a", 2, run_time="5s", start_delay="1s"),
        m.node("m", 1, at="3s"),
    )
    assert phases(answer, "a") == ["Pending", "PreScheduling", "Scheduling", "Scheduled", "Running", "Finished"]
    status = answer.obj("PodGroup", "a")["status"]
    assert (status["scheduled"], status["running"], status["succeeded"], status["failed"]) == (2, 0, 2, 0)
    assert phases(simulate(m.node("n"), m.sigs_podgroup("a", 2)), "a") == ["Pending"]
    failed = simulate(m.node("n", 2), m.sigs_podgroup("a", 2), m.labelled_pods("a", 2, run_time="5s", exit_code="1"))
    assert phases(failed, "a")[-1] == "Failed"


def test_k13_phases_of_scheduler_plugins_pod_groups() -> None:
    members = m.labelled_pods("a", 2, m.PLUGINS_LABEL, run_time="5s")
    owner = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "it", "uid": "u"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
    }
    thing = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "it", "namespace": "default", "uid": "u"},
    }
    for one in members:
        one["metadata"]["ownerReferences"] = [owner]
    answer = simulate(crd, thing, m.node("n", 2), m.sigs_podgroup("a", 2, api=m.PLUGINS), members)
    assert phases(answer, "a") == ["Pending", "Scheduling", "Running", "Finished"]
    status = answer.obj("PodGroup", "a")["status"]
    assert status["occupiedBy"] == "default/it"
    assert status["scheduleStartTime"]


def test_k13_conditions_of_kubernetes_pod_groups_are_sticky() -> None:
    for version in ("v1alpha2", "v1beta1"):
        group = m.native_podgroup("a", {"gang": {"minCount": 2}}, version)
        answer = simulate(m.node("n", 2), group, m.native_pods("a", 2), m.step("5s", "delete", "Pod", "a-0"))
        obj = answer.obj("PodGroup", "a")
        initially, now = condition(obj, "PodGroupInitiallyScheduled"), condition(obj, "PodGroupScheduled")
        assert initially is not None
        assert initially["status"] == "True"
        assert (now is None) == (version == "v1beta1")
        assert now is None or now["status"] == "False"


def test_k9_with_a_minimum_of_0_what_waits_later_is_surplus() -> None:
    """K3: no pod waits for others; of `only-waiting` too, once others of the gang run."""
    policy = {"policy": "only-waiting"}
    answer = simulate(
        m.node("n", 2),
        m.koordinator_gang("g", 1, 0, **policy),
        m.koordinator_gang("g", 2, 0, first=1, at="10s", **policy),
        until="20s",
    )
    assert answer.times("g-") == [0.0, 10.0]
    assert answer.waiting() == []
