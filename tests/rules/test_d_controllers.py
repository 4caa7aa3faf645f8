"""D1 and D2, and what admission says of policies (V2): the faults through lint, the waves through simulations.

What the engine makes of waves is in `test_d_waves`.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import lint, simulate


def after(made: m.Obj, *names: str, iteration: str | None = None) -> m.Obj:
    depends: m.Obj = {"name": list(names)}
    return {**made, "dependsOn": depends | ({"iteration": iteration} if iteration is not None else {})}


def faults(*roles: m.Obj, **spec: Any) -> dict[str, str]:
    """Field → message."""
    return {fault.field: fault.message for fault in lint(m.job("j", *roles, **spec)).faults}


def begins(answer: Answer, name: str) -> list[float]:
    return [line["t"] for line in answer.lines("created", name, "Pod")]


# ---- D1


def test_d1_names_that_do_not_exist() -> None:
    found = faults(m.role("a", 1), after(m.role("b", 1), "a", "nobody"))
    assert found == {"spec.tasks[1].dependsOn.name[1]": "there is no role 'nobody' (roles: a, b)"}


def test_d1_self_reference_is_a_cycle() -> None:
    (message,) = faults(after(m.role("a", 1), "a")).values()
    assert "cycle" in message
    assert "a → a" in message


@pytest.mark.parametrize("length", [2, 3, 5])
def test_d1_a_cycle_shows_its_path(length: int) -> None:
    names = [f"r{index}" for index in range(length)]
    roles = [after(m.role(name, 1), names[(index + 1) % length]) for index, name in enumerate(names)]
    (message,) = faults(m.role("free", 1), *roles).values()
    assert "cycle" in message
    assert " → ".join([*names, "r0"]) in message


def test_d1_all_faults_at_once() -> None:
    found = faults(
        after(m.role("a", 1), "a"), after(m.role("b", 1), "c"), after(m.role("c", 1), "b", "x", iteration="some")
    )
    assert len(found) == 4
    assert any("cycle" in text for text in found.values())
    assert any("'some'" in text for text in found.values())


def test_d2_a_role_with_an_explicit_minimum_of_zero_is_not_waited_for() -> None:
    roles = (m.role("a", 2, 0), m.role("b", 1, 1), after(m.role("c", 1, 1), "a"))
    assert faults(*roles) == {}
    assert begins(simulate(m.node("n", 2), m.job("j", *roles)), "j-c-0") == [0.0]


def test_d1_a_diamond_is_no_cycle() -> None:
    roles = (m.role("a", 1), after(m.role("b", 1), "a"), after(m.role("c", 1), "a"), after(m.role("d", 1), "b", "c"))
    assert faults(*roles) == {}


def test_d1_job_and_podgroup_are_marked() -> None:
    answer = simulate(
        m.node("n"), m.job("j", m.role("a", 1), after(m.role("b", 1), "a")), m.job("plain", m.role("a", 1))
    )
    for obj in (answer.obj("Job", "j"), answer.group_of("j")):
        assert obj["metadata"]["annotations"]["dependent-job"] == "true"
    for obj in (answer.obj("Job", "plain"), answer.group_of("plain")):
        assert "dependent-job" not in obj["metadata"].get("annotations", {})


# ---- D2


def test_d2_pods_are_made_when_what_they_wait_for_runs_and_is_ready() -> None:
    answer = simulate(
        m.node("n"), m.job("j", m.role("master", 2, start_delay="10s"), after(m.role("work", 2), "master"))
    )
    assert (begins(answer, "j-master-1"), begins(answer, "j-work-0")) == ([0.0], [10.0])
    assert answer.at("j-work-0") == 10.0


def test_d2_the_minimum_is_enough() -> None:
    answer = simulate(
        m.node("n", 2), m.job("j", m.role("a", 4, 1, start_delay="10s"), after(m.role("b", 1, cpu=None), "a"))
    )
    assert begins(answer, "j-b-0") == [10.0]


def test_d2_succeeded_counts_as_running() -> None:
    answer = simulate(
        m.node("n", 1),
        m.job("j", m.role("a", 2, run_time="5s"), after(m.role("b", 1), "a")),
        m.node("late", 1, at="9s"),
    )
    assert begins(answer, "j-b-0") == [9.0]
    answer = simulate(
        m.node("n", 1), m.job("j", m.role("a", 1, run_time="0s"), after(m.role("b", 1, run_time="1s"), "a"))
    )
    assert answer.obj("Job", "j")["status"]["state"]["phase"] == "Completed"


@pytest.mark.parametrize("iteration, at", [("any", 5.0), ("all", 20.0), (None, 20.0), ("", 20.0)])
def test_d2_any_or_all(iteration: str | None, at: float) -> None:
    roles = (
        m.role("a", 1, start_delay="5s"),
        m.role("b", 1, start_delay="20s"),
        after(m.role("c", 1), "a", "b", iteration=iteration),
    )
    assert begins(simulate(m.node("n"), m.job("j", *roles)), "j-c-0") == [at]


def test_d2_a_chain_of_three() -> None:
    roles = (after(m.role("c", 1), "b"), after(m.role("b", 2, start_delay="7s"), "a"), m.role("a", 1, start_delay="5s"))
    answer = simulate(m.node("n"), m.job("j", *roles))
    assert (begins(answer, "j-b-1"), begins(answer, "j-c-0")) == ([5.0], [12.0])
    assert answer.obj("Job", "j")["status"]["state"]["phase"] == "Running"


def test_d2_what_never_runs_is_waited_for() -> None:
    answer = simulate(
        m.node("n", 1),
        m.job("j", m.role("a", 1, run_time="5s", exit_code="1"), after(m.role("b", 1), "a"), minAvailable=2),
    )
    assert begins(answer, "j-b-0") == [0.0], "it did run, if not for long"
    answer = simulate(
        m.node("n", 1),
        m.job("j", m.role("a", 1, start_delay="9s", activeDeadlineSeconds=5), after(m.role("b", 1), "a")),
    )
    assert begins(answer, "j-b-0") == []
    state = answer.obj("Job", "j")["status"]["state"]
    assert state["phase"] == "Failed", "nothing is left that could let it begin"


@pytest.mark.parametrize("at", ["3s", "10s", "12s"])
def test_d2_a_restart_of_the_controllers_changes_nothing(at: str) -> None:
    roles = (m.role("a", 1, start_delay="10s", run_time="30s"), after(m.role("b", 2, run_time="20s"), "a"))
    plain, restarted = (
        simulate(m.node("n"), m.job("j", *roles)),
        simulate(m.node("n"), m.job("j", *roles), m.restart(at)),
    )
    assert [line for line in plain.timeline if line["kind"] == "Pod"] == [
        line for line in restarted.timeline if line["kind"] == "Pod"
    ]


def test_d2_a_restarted_job_goes_wave_by_wave_again() -> None:
    roles = (
        m.role("a", 1, start_delay="10s", run_time="60s"),
        after(m.role("b", 1, run_time="5s", exit_code="1,0"), "a"),
    )
    answer = simulate(m.node("n"), m.job("j", *roles, policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    assert (begins(answer, "j-a-0"), begins(answer, "j-b-0")) == ([0.0, 15.0], [10.0, 25.0])
    assert answer.obj("Job", "j")["status"]["state"]["phase"] == "Completed"


def test_d3_min_resources_are_of_the_waves_begun() -> None:
    answer = simulate(
        m.node("n", 3), m.job("j", m.role("a", 1, start_delay="10s"), after(m.role("b", 2), "a")), until="5s"
    )
    assert answer.group_of("j")["spec"]["minResources"] == {"cpu": "1"}
    answer = simulate(
        m.node("n", 3), m.job("j", m.role("a", 1, start_delay="10s"), after(m.role("b", 2), "a")), until="15s"
    )
    assert answer.group_of("j")["spec"]["minResources"] == {"cpu": "3"}


def test_d3_a_role_whose_pods_ran_and_died_is_not_skipped() -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 1), after(m.role("b", 1), "a")),
        *(m.step("5s", "delete", "Pod", f"j-{r}-0") for r in "ab"),
    )
    assert begins(answer, "j-b-0") == [0.0, 5.0]


# ---- V2, as admission sees it


@pytest.mark.parametrize(
    "policies, spec, word",
    [
        ([{"event": "PodFailed", "action": "AbortJob", "timeout": "soon"}], {}, "soon"),
        ([{"event": "PodFailed", "action": "AbortJob", "timeout": "-5s"}], {}, "below 0"),
        ([{"event": "Podfailed", "action": "AbortJob"}], {}, "unknown event"),
        ([{"event": "PodFailed", "action": "Explode"}], {}, "unknown action"),
        ([{"event": "PodFailed"}], {}, "is missing"),
        ([{"action": "AbortJob"}], {}, "needs an event"),
        ([{"event": "PodFailed", "exitCode": 3, "action": "AbortJob"}], {}, "both"),
        ([{"exitCode": 0, "action": "AbortJob"}], {}, "success"),
        ([{"event": "PodFailed", "action": a} for a in ("AbortJob", "RestartJob")], {}, "already"),
        ([{"exitCode": 3, "action": a} for a in ("AbortJob", "RestartJob")], {}, "already"),
        ([{"event": "PodFailed", "action": "AbortJob"}, {"exitCode": 3, "action": "RestartJob"}], {}, "never fire"),
        ([{"event": "*", "action": "AbortJob"}, {"exitCode": 3, "action": "RestartJob"}], {}, "never fire"),
        ([{"event": "TaskCompleted", "action": "CompleteJob"}], {"restartPolicy": "Always"}, "never fire"),
        ([{"event": "TaskFailed", "action": "AbortJob"}], {"restartPolicy": "Never"}, "never fire"),
    ],
)
def test_v2_policies_that_cannot_be_or_never_fire(policies: list[m.Obj], spec: dict[str, str], word: str) -> None:
    for place, found in (
        ("spec.policies", faults(m.role("a", 1, **spec), policies=policies)),
        ("spec.tasks[0].policies", faults(m.role("a", 1, policies=policies, **spec))),
    ):
        assert len(found) == 1
        assert next(iter(found)).startswith(place)
        assert word in next(iter(found.values()))


@pytest.mark.parametrize(
    "policies, spec",
    [
        ([{"exitCode": 3, "action": "RestartJob"}, {"event": "PodFailed", "action": "AbortJob"}], {}),
        ([{"event": "PodEvicted", "action": "RestartJob"}, {"exitCode": 3, "action": "AbortJob"}], {}),
        ([{"events": ["PodFailed", "TaskFailed"], "action": "AbortJob"}], {"restartPolicy": "Never"}),
        ([{"event": "TaskFailed", "action": "AbortJob"}], {"restartPolicy": "OnFailure"}),
        ([{"event": "TaskCompleted", "action": "CompleteJob"}], {"restartPolicy": "OnFailure"}),
        ([{"event": "PodFailed", "action": "RestartJob"}], {"restartPolicy": "Always"}),
        ([{"event": "PodPending", "action": "AbortJob", "timeout": "1h30m"}], {}),
    ],
)
def test_v2_policies_that_may_fire_are_taken(policies: list[m.Obj], spec: dict[str, str]) -> None:
    assert faults(m.role("a", 1, policies=policies, **spec), policies=policies) == {}


def test_v2_a_jobs_policy_may_be_for_some_roles_only() -> None:
    policies = [{"event": "TaskFailed", "action": "AbortJob"}]
    assert faults(m.role("a", 1), m.role("b", 1, restartPolicy="OnFailure"), policies=policies) == {}
    assert (
        faults(
            m.role("a", 1, policies=[{"event": "PodFailed", "action": "RestartPod"}]),
            policies=[{"event": "PodFailed", "action": "AbortJob"}],
        )
        == {}
    )


def test_v2_unknown_is_no_policy_of_a_role() -> None:
    policies = [{"event": "Unknown", "action": "RestartJob"}]
    assert faults(m.role("a", 1), policies=policies) == {}
    assert "never fire" in faults(m.role("a", 1, policies=policies))["spec.tasks[0].policies[0]"]


def test_m2_replicas_are_bounded_and_refused_at_once() -> None:
    began = time.monotonic()
    assert "100000" in faults(m.role("a", 2_000_000_000))["spec.tasks[0].replicas"]
    answer = simulate(m.node("n"), m.job("j", m.role("a", 2_000_000_000)))
    assert "spec.tasks[0].replicas" in answer.lines("rejected", "j")[0]["message"]
    assert time.monotonic() - began < 5
    assert "120000" in faults(m.role("a", 60_000), m.role("b", 60_000))["spec.tasks"]
    assert faults(m.role("a", 50_000), m.role("b", 50_000)) == {}
