"""K1: mode, groups, waiting-time and match-policy count on Volcano's and Kubernetes' own objects as well."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.simulation import lint, simulate

BOTH = ["default/g", "default/h"]


def annotated(obj: m.Obj, **fields: Any) -> m.Obj:
    """`groups`, `mode`, `wait`, `policy`."""
    texts = m.koordinator_annotations(**fields)
    return obj | {"metadata": obj["metadata"] | {"annotations": (obj["metadata"].get("annotations") or {}) | texts}}


def volcano(name: str, count: int = 2, at: str | None = None, **fields: Any) -> list[m.Obj]:
    group, *pods = m.gang(name, count, **({"at": at} if at else {}))
    return [annotated(group, **fields), *pods]


def native(name: str, count: int = 2, at: str | None = None, **fields: Any) -> list[m.Obj]:
    group = m.native_podgroup(name, {"gang": {"minCount": count}})
    return [annotated(group, **fields), *m.native_pods(name, count, at=at)]


def koordinator(name: str, count: int = 2, at: str | None = None, **fields: Any) -> list[m.Obj]:
    return m.koordinator_gang(name, count, at=at, **fields)


def job(name: str, count: int = 2, at: str | None = None, **fields: Any) -> list[m.Obj]:
    return [annotated(m.job(name, m.role("w", count), at=at), **fields)]


KINDS = {"volcano": volcano, "native": native, "koordinator": koordinator, "job": job}
PAIRS = [(one, other) for one in KINDS for other in KINDS]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_k1_gangs_of_any_dialects_start_together(first: str, second: str) -> None:
    docs = [m.node("n", 3), *KINDS[first]("g", groups=BOTH), *KINDS[second]("h", groups=BOTH)]
    late = m.node("late", 1, at="9s")
    for more in ([], [m.restart("5s")]):
        answer = simulate(*docs, late, more, until="60s")
        assert answer.times() == [9.0] * 4


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_k1_a_gang_that_comes_later_is_waited_for(first: str, second: str) -> None:
    docs = [m.node("n", 8), *KINDS[first]("g", groups=BOTH)]
    alone = simulate(*docs, until="20s")
    assert not alone.bound()
    assert "default/h, which it names, does not exist" in alone.why("default/g")
    answer = simulate(*docs, *KINDS[second]("h", groups=BOTH, at="30s"), until="60s")
    assert answer.times() == [30.0] * 4


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_k1_a_gang_that_does_not_name_back_exists(first: str, second: str) -> None:
    """It starts by itself, and the one that names it after it; until then that one says so."""
    docs = [m.node("n", 8), *KINDS[first]("g", groups=BOTH), *KINDS[second]("h", 9, at="5s")]
    waiting = simulate(*docs, until="20s")
    assert not waiting.bound("g")
    assert "default/h, which it names, is not satisfied yet" in waiting.why("default/g")
    answer = simulate(*docs, m.node("late", 4, at="30s"), until="60s")
    assert {*answer.times("h"), *answer.times("g")} == {30.0}


@pytest.mark.parametrize("kind", KINDS)
def test_k1_the_alias_of_groups_counts(kind: str) -> None:
    docs = KINDS[kind]("g", groups=BOTH)
    for one in docs:
        texts = one["metadata"].get("annotations") or {}
        if m.KOORDINATOR + "groups" in texts:
            texts[m.KOORDINATOR + "gang-groups"] = texts.pop(m.KOORDINATOR + "groups")
    assert not simulate(m.node("n", 8), *docs, until="20s").bound()


@pytest.mark.parametrize("kind", ["volcano", "native", "job"])
def test_k1_a_nonstrict_gang_holds_what_fits(kind: str) -> None:
    busy = [m.priority_class("high", 10), m.pod("busy", 3, run_time="20s", priority="high")]
    docs = [m.node("n", 8), *busy, m.pod("later", 3, at="5s")]
    answer = simulate(docs, KINDS[kind]("g", 6, mode="NonStrict"), until="60s")
    assert answer.times("g") == [20.0] * 6
    assert answer.at("later") is None
    strict = simulate(docs, KINDS[kind]("g", 6), until="60s")
    assert strict.at("later") == 5.0


@pytest.mark.parametrize("kind", ["volcano", "native"])
@pytest.mark.parametrize("mode", ["Strict", "NonStrict"])
def test_k1_the_waiting_time_ends(kind: str, mode: str) -> None:
    groups = {"groups": BOTH} if mode == "Strict" else {}
    answer = simulate(m.node("n", 2), KINDS[kind]("g", 3, mode=mode, wait="30s", **groups), until="60s")
    marks = [pod["metadata"]["annotations"].get(m.KOORDINATOR + "timeout") for pod in answer.all("Pod", "g")]
    assert marks == ["true"] * 3
    forever = simulate(m.node("n", 2), KINDS[kind]("g", 3), until="2h")
    assert not any(m.KOORDINATOR + "timeout" in (pod["metadata"].get("annotations") or {})
                   for pod in forever.all("Pod", "g"))  # fmt: skip


@pytest.mark.parametrize("kind", ["volcano", "native"])
@pytest.mark.parametrize(("policy", "starts"), [("once-satisfied", True), ("only-waiting", False)])
def test_k1_the_match_policy_counts(kind: str, policy: str, starts: bool) -> None:
    """A pod that comes after its gang started is an ordinary one, or not enough by itself."""
    more = m.pod("g-9", group="g", at="9s") if kind == "volcano" else None
    more = more or m.pod("g-9", schedulingGroup={"podGroupName": "g"}, at="9s")
    answer = simulate(m.node("n", 8), KINDS[kind]("g", 2, policy=policy), more, until="20s")
    assert len(answer.bound("g-0")) == 1
    assert (answer.at("g-9") is not None) is starts


def test_k1_minima_by_role_and_groups_are_one_system() -> None:
    group = annotated(m.podgroup("g", 2, roles={"m": 1, "w": 1}), groups=BOTH)
    pods = [m.pod(f"g-{role}", group="g", role=role) for role in ("m", "w")]
    mate = m.koordinator_gang("h", 1, groups=BOTH, at="9s")
    assert not simulate(m.node("n"), group, pods, until="8s").bound()
    assert simulate(m.node("n"), group, pods, mate).times() == [9.0] * 3
    lacking = m.koordinator_gang("h", 1, groups=BOTH)
    assert not simulate(m.node("n"), group, pods[:1], lacking, until="20s").bound()


def test_k1_jobs_of_a_group_are_enqueued_each() -> None:
    """A Job's pods are created once it is enqueued: the others of its group do not keep it from that."""
    docs = [m.node("n", 4), m.pod("busy", 2, run_time="30s"), job("g", groups=BOTH), job("h", groups=BOTH)]
    answer = simulate(*docs, until="60s")
    assert {at for at, name in answer.bound().values() if at} == {30.0}
    assert len(answer.bound("g-")) == len(answer.bound("h-")) == 2


def test_k1_what_a_group_holds_counts_as_free_for_its_jobs() -> None:
    """The pods that one Job holds do not keep the other, which is to start with it, from being enqueued (M6)."""
    docs = [m.node("n", 4), *job("g", 2, groups=BOTH, mode="NonStrict")]
    answer = simulate(*docs, *job("h", 3, groups=BOTH, mode="NonStrict", at="5s"), m.node("late", 1, at="20s"))
    assert answer.times() == [20.0] * 5


def test_k1_the_clock_does_not_run_for_pods_that_our_controller_has_not_made() -> None:
    docs = [m.node("n", 4), m.pod("busy", 3, run_time="100s")]
    docs += [*job("g", groups=BOTH, wait="20s"), *job("h", groups=BOTH, wait="20s")]
    answer = simulate(*docs, until="200s")
    assert len(answer.bound("g-")) == len(answer.bound("h-")) == 2


def test_k1_an_edit_of_the_job_is_copied() -> None:
    edit = m.patch("9s", "Job", "g", metadata={"annotations": {m.KOORDINATOR + "groups": None}})
    answer = simulate(m.node("n", 8), *job("g", groups=BOTH), edit, until="20s")
    assert answer.times("g") == [9.0] * 2
    added = m.patch("5s", "Job", "g", metadata={"annotations": m.koordinator_annotations(groups=BOTH)})
    docs = [m.node("n", 1), *job("g"), added, m.node("late", 1, at="9s")]
    assert not simulate(*docs, until="20s").bound()


@pytest.mark.parametrize("kind", ["volcano", "native", "job"])
def test_k1_bad_values_are_warned_of(kind: str) -> None:
    first = KINDS[kind]("g", mode="Loose", groups="x", wait="soon", policy="never")
    answer = simulate(m.node("n", 8), first, until="20s")
    assert len(answer.bound()) == 2
    said = " ".join(answer.warnings())
    for words in ("mode 'Loose'", "groups 'x'", "waiting-time 'soon'", "match-policy 'never'"):
        assert words in said
        assert any(words in one.message for one in lint(first).warnings)
    other = annotated(KINDS[kind]("g")[0], gang=None, minimum=7)
    assert any("min-available" in one.message and "no effect" in one.message for one in lint([other]).warnings)
