"""Nothing that one tenant writes makes another tenant's gang wait, fail, be marked or lose room (S1, K7)."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

Obj = m.Obj
WITHOUT_CONSENT = ["a/evil", "b/victim"]


def in_namespace(namespace: str, *objects: Obj) -> list[Obj]:
    return [{**one, "metadata": {**one["metadata"], "namespace": namespace}} for one in objects]


EVIL = {
    "PodGroup without pods": [m.sigs_podgroup("evil", 1, groups=WITHOUT_CONSENT)],
    "PodGroup of scheduler-plugins": [m.sigs_podgroup("evil", 1, api=m.PLUGINS, groups=WITHOUT_CONSENT)],
    "complete": [m.sigs_podgroup("evil", 1, groups=WITHOUT_CONSENT, wait="5s"), *m.labelled_pods("evil", 1, cpu=100)],
    "annotations": m.koordinator_gang("evil", 1, 2, groups=WITHOUT_CONSENT, wait="5s"),
    "NonStrict": m.koordinator_gang("evil", 2, cpu=100, groups=WITHOUT_CONSENT, mode=m.NON_STRICT, wait="5s"),
}
VICTIM = {
    "PodGroup": [m.sigs_podgroup("victim", 2, at="1s"), *m.labelled_pods("victim", 2, at="1s")],
    "scheduler-plugins": [m.sigs_podgroup("victim", 2, api=m.PLUGINS, at="1s"), *m.labelled_pods("victim", 2, at="1s")],
    "annotations": m.koordinator_gang("victim", 2, at="1s"),
    "NonStrict": m.koordinator_gang("victim", 2, mode=m.NON_STRICT, at="1s"),
    "group of its own": [
        *m.koordinator_gang("victim", 1, groups=["b/victim", "b/victim2"], at="1s"),
        *m.koordinator_gang("victim2", 1, groups=["b/victim", "b/victim2"], at="1s"),
    ],
}


def run(evil: list[Obj], victim: list[Obj], *more: Obj) -> Answer:
    return simulate(m.node("n", 2), in_namespace("a", *evil), in_namespace("b", *victim), *more, until="700s")


@pytest.mark.parametrize("victim", VICTIM)
@pytest.mark.parametrize("evil", EVIL)
def test_s1_a_gang_that_is_named_without_its_consent_does_not_wait(evil: str, victim: str) -> None:
    answer = run(EVIL[evil], VICTIM[victim])
    assert answer.times("victim") == [1.0, 1.0]
    assert not [line for line in answer.lines("timeout") if line["name"].startswith("victim")]


def test_s1_attack_t1_one_object_that_names_300_gangs_delays_none() -> None:
    """Attacks A1i and A1j: of three namespaces, with a waiting time of ten years."""
    victims = [(f"ns{number % 3}", f"victim{number}") for number in range(300)]
    names = ["a/evil", *(f"{namespace}/{name}" for namespace, name in victims)]
    evil = in_namespace("a", m.sigs_podgroup("evil", 1, groups=names, wait="87600h"))
    gangs = [m.koordinator_gang(name, 1, cpu="1m", namespace=namespace, at="1s") for namespace, name in victims]
    answer = simulate([m.node(f"n{n}", 4) for n in range(3)], evil, *gangs, until="700s")
    assert answer.times("victim") == [1.0] * 300
    assert not answer.lines("timeout")


@pytest.mark.parametrize("restarts", [[], ["3s"]])
def test_s1_the_timeout_mark_stops_at_the_border(restarts: list[str]) -> None:
    """The victim has no room until the evil gang's clock is over."""
    victim = in_namespace("b", *m.koordinator_gang("victim", 2, wait="600s"))
    evil = in_namespace("a", *m.koordinator_gang("evil", 1, groups=WITHOUT_CONSENT, wait="5s"))
    answer = simulate(victim, evil, m.node("n", 2, at="50s"), *(m.restart(at) for at in restarts), until="700s")
    assert [(line["t"], line["name"]) for line in answer.lines("timeout")] == [(5.0, "evil-0")]
    assert answer.times("victim") == [50.0, 50.0]


def test_s1_a_strict_gang_does_not_make_one_that_it_names_strict() -> None:
    victim = in_namespace("b", *m.koordinator_gang("victim", 3, mode=m.NON_STRICT))
    evil = in_namespace("a", *m.koordinator_gang("evil", 1, groups=WITHOUT_CONSENT, at="2s"))
    answer = simulate(m.node("n", 2), victim, evil, m.pod("s", 1, at="3s"), m.node("m", 1, at="9s"), until="20s")
    assert not answer.lines("released")
    assert answer.times("victim") == [9.0, 9.0, 9.0]


def test_s1_consent_makes_a_group() -> None:
    gangs = [
        *in_namespace("a", *m.koordinator_gang("evil", 1, groups=WITHOUT_CONSENT)),
        *in_namespace("b", *m.koordinator_gang("victim", 2, groups=WITHOUT_CONSENT)),
    ]
    answer = simulate(m.node("n", 2), gangs, m.node("m", 1, at="9s"))
    assert answer.times() == [9.0, 9.0, 9.0]


def test_s1_no_gang_evicts_by_the_priority_of_its_group() -> None:
    """`a` is of high priority and `b` of low: what `b` needs is not taken from a gang of middle priority."""
    classes = [m.priority_class(name, value) for name, value in (("high", 100), ("middle", 50), ("low", 1))]
    group = ["default/a", "default/b"]

    def answer(of_b: str) -> Answer:
        return simulate(
            classes,
            m.node("n", 2),
            m.pods(2, "middle-", priority="middle"),
            m.koordinator_gang("a", 1, groups=group, priority="high", at="5s"),
            m.koordinator_gang("b", 1, groups=group, priority=of_b, at="5s"),
            until="20s",
        )

    assert answer("low").evicted() == []
    assert len(answer("high").evicted()) == 2
