"""G12: fair share over time. Gangs of equal priority are served by what their namespace and user, or their queue, have
used against their share; usage halves with every half-life, and a restart changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from enbloc.api.meta import Obj
from enbloc.config import ConfigError, parse
from enbloc.gangs import usage_records
from enbloc.gangs.hints import USER
from enbloc.gangs.usage_records import ANNOTATION
from enbloc.sim.simulation import Records
from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

NODE = m.node("n", 1)


def fair(actions: str = "allocate", **arguments: Any) -> Obj:
    return {"actions": actions, "tiers": [{"plugins": [{"name": "fair", "arguments": arguments}]}]}


def job(
    name: str, at: int, run: int = 10, *, namespace: str = "a", user: str = "", queue: str = "default"
) -> list[Obj]:
    """A gang of one pod that uses the whole cluster."""
    group, pod = m.gang(name, 1, cpu=1, at=f"{at}s", namespace=namespace, run_time=f"{run}s", queue=queue)
    if user:
        group["metadata"]["annotations"][USER] = user
    return [group, pod]


def play(*values: Any, **options: Any) -> Answer:
    return simulate(*_flat(values), **options)


def _flat(values: Any) -> list[Obj]:
    return [values] if isinstance(values, dict) else [one for value in values for one in _flat(value)]


def starts(answer: Answer, *names: str) -> list[float]:
    return [answer.times(f"{name}-")[0] for name in names]


def record(answer: Answer, queue: str = "default") -> dict[str, list[int]]:
    text = answer.obj("Queue", queue, "")["metadata"]["annotations"][ANNOTATION]
    assert text.startswith("hmac:key-1:")
    found: dict[str, list[int]] = json.loads(text.split(":", 3)[3])["accounts"]
    return found


# ---- order


def test_g12_the_namespace_that_used_less_is_served_first() -> None:
    """Without the plugin the older gang of namespace a would be next."""
    objects = [NODE, job("a1", 0, 100), job("a2", 1), job("b1", 2, namespace="b")]
    assert starts(play(objects, config=fair()), "a1", "b1", "a2") == [0, 100, 110]
    assert starts(play(objects, config={"actions": "allocate"}), "a1", "a2", "b1") == [0, 100, 110]


def test_g12_within_a_namespace_the_user_that_used_less_is_served_first() -> None:
    objects = [NODE, job("x1", 0, 100, user="x"), job("x2", 1, user="x"), job("y1", 2, user="y")]
    assert starts(play(objects, config=fair()), "x1", "y1", "x2") == [0, 100, 110]


def test_g12_k7_gangs_that_start_together_go_by_the_user_that_used_least_now() -> None:
    """While they wait user x uses 100 s, and `gy` comes to be the first of the two: before `z2`, which is younger."""
    together = []
    for name, user, at in (("gx", "x", "2s"), ("gy", "y", "3s")):
        pair = m.gang(name, 1, cpu="500m", at=at, namespace="a", run_time="10s")
        pair[0]["metadata"]["annotations"] |= {USER: user, m.KOORDINATOR + "groups": "a/gx,a/gy"}
        together.append(pair)
    objects = [NODE, job("w1", 0, 50, user="w"), job("x1", 1, 100, user="x"), *together, job("z2", 4, user="z")]
    assert starts(play(objects, config=fair()), "w1", "x1", "gx", "gy", "z2") == [0, 50, 150, 150, 160]


def test_g12_priority_comes_before_usage() -> None:
    high = job("a2", 1)
    high[0]["spec"]["priorityClassName"] = "high"
    objects = [NODE, m.priority_class("high", 10), job("a1", 0, 100), high, job("b1", 2, namespace="b")]
    assert starts(play(objects, config=fair()), "a1", "a2", "b1") == [0, 100, 110]


def test_g12_of_accounts_with_equal_usage_the_one_that_uses_less_now_is_next() -> None:
    """Two users submit three jobs each at once: they take turns."""
    objects = [m.node("n", 3), *(job(f"{user}{n}", 0, user=user) for user in "xy" for n in range(3))]
    assert sorted(play(objects, config=fair(), until="1s").bound()) == ["x0-0", "x1-0", "y0-0"]


def test_g12_a_larger_share_allows_more_usage() -> None:
    """a used 100 s of its share of 4, b 50 s of its share of 1."""
    objects = [NODE, job("a1", 0, 100), job("b1", 1, 50, namespace="b"), job("b2", 2, namespace="b"), job("a2", 3)]
    shares = {"a": 4}
    assert starts(play(objects, config=fair(shares=shares)), "a1", "b1", "a2", "b2") == [0, 100, 150, 160]
    assert starts(play(objects, config=fair()), "a1", "b1", "b2", "a2") == [0, 100, 150, 160]


@pytest.mark.parametrize(
    ("shares", "first"),
    [
        pytest.param({"a": 2}, "a2", id="a of 2, b of the default"),
        pytest.param({"b": 2}, "b2", id="b of 2, a of the default"),
        pytest.param({"a": 2, "b": 2}, "b2", id="both of 2"),
        pytest.param({}, "b2", id="both of the default"),
        pytest.param({"a/": 2}, "b2", id="a share of a user is none of its namespace"),
    ],
)
def test_g12_a_share_that_is_not_given_is_1(shares: dict[str, int], first: str) -> None:
    """a used 100 s, b 60 s."""
    objects = [NODE, job("a1", 0, 100), job("b1", 1, 60, namespace="b"), job("b2", 2, namespace="b"), job("a2", 3)]
    second = {"a2": "b2", "b2": "a2"}[first]
    assert starts(play(objects, config=fair(shares=shares)), "a1", "b1", first, second) == [0, 100, 160, 170]


@pytest.mark.parametrize(("shares", "first"), [({"a/x": 2}, "x2"), ({"a/y": 2}, "y2"), ({"x": 2}, "y2"), ({}, "y2")])
def test_g12_a_share_of_a_user_is_named_with_its_namespace(shares: dict[str, int], first: str) -> None:
    """x used 100 s, y 60 s."""
    objects = [NODE, job("x1", 0, 100, user="x"), job("y1", 1, 60, user="y"), job("y2", 2, user="y")]
    answer = play(objects, job("x2", 3, user="x"), config=fair(shares=shares))
    second = {"x2": "y2", "y2": "x2"}[first]
    assert starts(answer, "x1", "y1", first, second) == [0, 100, 160, 170]


@pytest.mark.parametrize(("half_life", "first"), [("1h", "a2"), ("10s", "b2")])
def test_g12_usage_halves_with_every_half_life(half_life: str, first: str) -> None:
    """b used 100 s long ago, a 60 s just now: with a short half-life only the latter is remembered."""
    objects = [
        NODE,
        job("b1", 0, 100, namespace="b"),
        job("a1", 100, 60),
        job("a2", 110),
        job("b2", 111, namespace="b"),
    ]
    answer = play(objects, config=fair(halfLife=half_life))
    second = {"a2": "b2", "b2": "a2"}[first]
    assert starts(answer, "b1", "a1", first, second) == [0, 100, 160, 170]


def test_g12_by_queue_the_queue_that_used_less_of_its_weight_is_served_first() -> None:
    queues = [m.queue("a"), m.queue("b")]
    objects = [NODE, *queues, job("a1", 0, 100, queue="a"), job("a2", 1, queue="a"), job("b1", 2, queue="b")]
    assert starts(play(objects, config=fair(by="queue")), "a1", "b1", "a2") == [0, 100, 110]
    both = [NODE, m.queue("a", 5), m.queue("b"), job("a1", 0, 100, queue="a"), job("b1", 1, 50, queue="b")]
    late = [job("b2", 2, queue="b"), job("a2", 3, queue="a")]
    assert starts(play(both, late, config=fair(by="queue")), "a1", "b1", "a2", "b2") == [0, 100, 150, 160]


# ---- what is charged


def test_g12_usage_is_the_dominant_share_of_the_cluster_over_time() -> None:
    """A quarter of the cpus and half of the memory for 40 s: 20 s of the whole cluster."""
    pod = m.pod("p", 1, memory="8Gi", namespace="a", run_time="40s")
    answer = play(m.node("n", 4, memory="16Gi"), pod, config=fair(halfLife="1000000h"))
    used, as_of, rate = record(answer)["a"]
    assert (round(used / 1e9, 3), rate) == (20, 0)
    assert record(answer)["a/"] == [used, as_of, 0]


def test_g12_pods_of_other_schedulers_and_gangs_that_wait_are_not_charged() -> None:
    other = m.pod("other", 1, namespace="a", schedulerName="theirs", nodeName="n", run_time="50s")
    config = {**fair(), "schedulerNames": ["enbloc"]}
    answer = play(NODE, other, job("b1", 1, 10, namespace="b"), config=config)
    assert set(record(answer)) == {"b", "b/"}


# ---- S1: a tenant cannot charge another, nor escape what it used


def test_g12_s1_a_name_of_a_user_counts_in_its_own_namespace_alone() -> None:
    """a names b's user, and a new one for each gang: neither charges b, nor makes a's gangs come first."""
    objects = [
        NODE,
        job("a1", 0, 100, user="bob"),
        job("a2", 1, user="fresh"),
        job("b1", 2, namespace="b", user="bob"),
    ]
    assert starts(play(objects, config=fair()), "a1", "b1", "a2") == [0, 100, 110]


def test_g12_a_name_that_is_too_long_does_not_count_and_is_warned_of() -> None:
    answer = play(NODE, job("a1", 0, user="u" * 64), config=fair())
    assert set(record(answer)) == {"a", "a/"}
    assert any(USER in event["message"] for event in answer.all("Event") if event["type"] == "Warning")


# ---- S2: the record


FORGED = usage_records.write(
    usage_records.UsageRecord(
        {"b": usage_records.AccountRecord(10**15, 0, 0), "b/": usage_records.AccountRecord(1, 0, 0)}
    )
)


@pytest.mark.parametrize("restarts", [[], [m.restart("50s")]], ids=["running", "restarted"])
def test_g12_s2_a_record_that_the_scheduler_did_not_write_does_not_count(restarts: list[Obj]) -> None:
    queue = m.queue("default")
    queue["metadata"].setdefault("annotations", {})[ANNOTATION] = FORGED
    late = m.patch("20s", "Queue", "default", metadata={"annotations": {ANNOTATION: FORGED}})
    objects = [NODE, queue, job("a1", 0, 100), job("a2", 1), job("b1", 2, namespace="b"), late, restarts]
    answer = play(objects, config=fair(), records=Records.AS_WRITTEN)
    assert starts(answer, "a1", "b1", "a2") == [0, 100, 110]


def test_g12_s2_a_record_counts_on_its_own_queue_alone() -> None:
    """A record that the scheduler wrote, copied from another queue while no scheduler ran."""
    used = play(NODE, m.queue("q"), job("b1", 0, 100, namespace="b", queue="q"), config=fair())
    text = used.obj("Queue", "q", "")["metadata"]["annotations"][ANNOTATION]
    queue = m.queue("default")
    queue["metadata"].setdefault("annotations", {})[ANNOTATION] = text
    objects = [NODE, queue, m.restart("0s"), job("a1", 0, 50), job("a2", 1), job("b2", 2, namespace="b")]
    answer = play(objects, config=fair(), records=Records.AS_WRITTEN)
    assert starts(answer, "a1", "b2", "a2") == [0, 50, 60]


def test_g12_the_record_is_bounded() -> None:
    """Names are cheap: those that used least are forgotten, and usage of the namespace stays."""
    made = {f"a/u{n}": usage_records.AccountRecord(10**6, 0, 0) for n in range(usage_records.MOST_ACCOUNTS + 1)}
    assert usage_records.read(usage_records.write(usage_records.UsageRecord(made))) is None
    longest = {f"{'n' * 63}/{n:063d}": usage_records.AccountRecord(2**62, 2**62, 2**62) for n in range(1_000)}
    assert len(usage_records.write(usage_records.UsageRecord(longest))) < usage_records.RECORD_BYTES


# ---- reasons


def test_g12_a_gang_that_waits_says_what_was_used() -> None:
    """With the number of the last cycle, at 40 s: a used 30 s, b 10 s."""
    waiting = [job("a2", 11), job("b2", 12, namespace="b"), job("a3", 40)]
    answer = play(NODE, job("b1", 0, 10, namespace="b"), job("a1", 10, 90), waiting, config=fair(), until="50s")
    assert "; namespace a used 1.5 of its share over the last week" in answer.why("a/a2")
    assert "of its share" not in answer.why("b/b2")
    said = [one["message"] for one in answer.obj("PodGroup", "a3", "a")["status"]["conditions"]]
    assert any("namespace a used 1.5 of its share over the last week" in message for message in said)


def test_g12_by_queue_a_gang_says_what_its_queue_used() -> None:
    objects = [NODE, m.queue("q"), m.queue("r"), job("r1", 0, 10, queue="r"), job("q1", 10, 90, queue="q")]
    late = [job("q2", 11, queue="q"), job("r2", 40, queue="r")]
    answer = play(objects, late, config=fair(by="queue", halfLife="36h"), until="50s")
    assert "queue q used 1.5 of its share over the last 1.5 days" in answer.why("a/q2")


# ---- config


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"by": "group"}, "by"),
        ({"halfLife": "1ms"}, "at least 1s"),
        ({"halfLife": "soon"}, "halfLife"),
        ({"shares": {"a": 0}}, "shares"),
        ({"share": {"a": 1}}, "unknown argument"),
    ],
)
def test_g12_bad_arguments_are_refused(arguments: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        parse(fair(**arguments))
