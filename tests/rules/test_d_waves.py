"""Rules D3, D4 and D5: waves as gangs of their own, and a whole job as one gang over its waves."""

from __future__ import annotations

from typing import Any

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

WHOLE = {"enbloc.dev/depends-on-gang": "true"}


def after(dependency: str, made: dict[str, Any]) -> dict[str, Any]:
    return {**made, "dependsOn": {"name": [dependency]}}


def two_waves(name: str = "j", *, whole: bool = True, start: str = "10s", **options: Any) -> dict[str, Any]:
    """A master that takes its time to start, and two workers that wait for it."""
    made = m.job(
        name,
        m.role("master", 1, run_time="60s", start_delay=start),
        after("master", m.role("work", 2, run_time="30s", **options)),
    )
    if whole:
        made["metadata"].setdefault("annotations", {}).update(WHOLE)
    return made


def claims(answer: Answer, name: str = "j") -> str:
    return answer.group_of(name)["metadata"].get("annotations", {}).get("enbloc.dev/claim-wave", "")


def test_d3_each_wave_is_a_gang_of_its_own() -> None:
    answer = simulate(m.node("n", 2), two_waves(whole=False), m.pod("small", cpu=1, run_time="100s", at="20s"))
    assert answer.at("j-master-0") == 0.0
    assert answer.at("j-work-0") is None or answer.at("j-work-0") == answer.at("j-work-1")


def test_d3_a_wave_that_does_not_fit_waits_whole() -> None:
    answer = simulate(m.node("n", 2), two_waves(whole=False), m.node("late", 1, at="40s"))
    assert {answer.at("j-work-0"), answer.at("j-work-1")} == {40.0}
    assert answer.at("j-master-0") == 0.0


def test_d4_surplus_of_an_earlier_wave_leaves_room_for_the_next() -> None:
    master = m.role("master", 3, 1, run_time="60s", start_delay="10s")
    made = m.job("j", master, after("master", m.role("work", 2, run_time="30s")))
    answer = simulate(m.node("n", 3), made)
    assert {answer.at("j-work-0"), answer.at("j-work-1")} == {10.0}
    assert answer.at("j-master-1") == 40.0, "only when the workers are through"


def test_d5_the_first_wave_starts_only_if_all_waves_fit() -> None:
    answer = simulate(m.node("n", 2), two_waves(), m.node("late", 1, at="30s"))
    assert answer.at("j-master-0") == 30.0
    assert {answer.at("j-work-0"), answer.at("j-work-1")} == {40.0}
    before = simulate(m.node("n", 2), two_waves())
    assert "role work" in before.why("default/j")
    assert not before.bound()


def test_d5_no_other_gang_uses_the_room_of_later_waves() -> None:
    thief = m.pod("thief", cpu=1, run_time="5s", at="2s")
    answer = simulate(m.node("n", 3), two_waves(), thief)
    assert {answer.at("j-work-0"), answer.at("j-work-1")} == {10.0}
    assert answer.at("thief") == 40.0, "when the workers have ended"
    without = simulate(m.node("n", 3), two_waves(whole=False), thief)
    assert without.at("thief") == 2.0


def test_d5_the_claim_is_written_down_and_used_up() -> None:
    midway = simulate(m.node("n", 3), two_waves(), until="5s")
    assert '"work":{"n":2}' in claims(midway)
    assert not claims(simulate(m.node("n", 3), two_waves()))


def test_d5_the_timeline_shows_which_gang_has_room_where() -> None:
    def room_lines(answer: Answer) -> list[tuple[float, str, str, str]]:
        lines = [line for line in answer.data["timeline"] if line["what"] in ("reserved", "released")]
        return [(line["t"], line["what"], line["name"], line["node"]) for line in lines]

    reserved = [(0.0, "reserved", f"j-work-{index}", "n") for index in range(2)]
    assert room_lines(simulate(m.node("n", 3), two_waves())) == reserved, "what is used is not released"
    config = {"dependsOn": {"gangDeadline": "20s"}}
    late = simulate(m.node("n", 3), two_waves(start="60s"), config=config, until="30s")
    assert room_lines(late) == [*reserved, *[(20.0, "released", f"j-work-{index}", "n") for index in range(2)]]
    made = two_waves(start="60s")
    made["metadata"]["annotations"]["sim.enbloc.dev/delete-at"] = "15s"
    assert [line[:2] for line in room_lines(simulate(m.node("n", 3), made))[2:]] == [(15.0, "released")] * 2


def test_d5_survives_a_restart_of_the_scheduler() -> None:
    thief = m.pod("thief", cpu=1, run_time="5s", at="3s")
    answer = simulate(m.node("n", 3), two_waves(), m.step("2s", "restart-scheduler"), thief)
    assert {answer.at("j-work-0"), answer.at("j-work-1")} == {10.0}
    assert answer.at("thief") == 40.0


def test_d5_ends_at_its_deadline() -> None:
    thief = m.pod("thief", cpu=1, run_time="500s", at="3s")
    config = {"dependsOn": {"gangDeadline": "20s"}}
    answer = simulate(m.node("n", 3), two_waves(start="60s"), thief, config=config, until="100s")
    assert answer.at("thief") == 20.0
    assert not claims(answer)
    assert any(event["reason"] == "ClaimExpired" for event in answer.all("Event"))


def test_d5_ends_with_the_job() -> None:
    made = two_waves(start="60s")
    made["metadata"]["annotations"]["sim.enbloc.dev/delete-at"] = "15s"
    answer = simulate(m.node("n", 3), made, m.pod("thief", cpu=3, run_time="5s", at="3s"))
    assert answer.at("thief") == 15.0


def test_d5_a_node_that_goes_takes_the_claim_with_it() -> None:
    nodes = [m.node("a", 1), m.node("b", 2, delete_at="5s")]
    answer = simulate(nodes, two_waves(), until="30s")
    assert not claims(answer)
    assert any(event["reason"] == "ClaimDropped" for event in answer.all("Event"))


def test_d5_three_waves_keep_room_for_the_last() -> None:
    made = m.job(
        "j",
        m.role("a", 1, run_time="100s", start_delay="10s"),
        after("a", m.role("b", 1, run_time="100s", start_delay="10s")),
        after("b", m.role("c", 1, run_time="100s")),
    )
    made["metadata"].setdefault("annotations", {}).update(WHOLE)
    answer = simulate(
        m.node("n", 3), made, [m.pod(f"thief-{i}", cpu=1, run_time="5s", at=f"{i}s") for i in range(1, 15, 6)]
    )
    assert [answer.at(f"j-{name}-0") for name in "abc"] == [0.0, 10.0, 20.0]
    assert min(answer.at(f"thief-{i}") for i in (1, 7, 13)) == 110.0, "when the first role has run its 100 s"


def test_d5_a_pod_that_differs_from_its_template_is_checked_again() -> None:
    """The job's volume, which no template names, pins its pods to m; the room was found on n, which is emptier."""
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "claimRef": {"namespace": "default", "name": "data"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["m"]}]}
                    ]
                }
            },
        },
        "status": {"phase": "Bound"},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"volumeName": "v", "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }
    made = two_waves()
    made["spec"]["volumes"] = [{"mountPath": "/data", "volumeClaimName": "data"}]
    answer = simulate(volume, claim, m.node("m", 4), m.node("n", 16), made)
    assert {answer.lines("bound", f"j-{name}")[0]["node"] for name in ("master-0", "work-0", "work-1")} == {"m"}
    assert answer.at("j-work-0") == 10.0
    dropped = [event for event in answer.all("Event") if event["reason"] == "ClaimDropped"]
    assert "differs from its template" in dropped[0]["message"]
    assert not claims(answer)


def waiting_second_wave(*more: Any) -> list[Any]:
    """Two masters run, three workers find no room."""
    made = m.job("j", m.role("a", 2), after("a", m.role("b", 3)))
    return [m.node("n", 4), made, *more]


def test_d3_what_an_earlier_wave_lost_comes_back_by_itself() -> None:
    answer = simulate(*waiting_second_wave(m.step("5s", "delete", "Pod", "j-a-1")))
    assert [line["t"] for line in answer.lines("bound", "j-a-1")] == [0.0, 5.0]
    assert answer.at("j-b-0") is None


def test_d3_an_earlier_wave_that_is_all_gone_starts_over_before_the_next() -> None:
    gone = [m.step("5s", "delete", "Pod", f"j-a-{index}") for index in range(2)]
    answer = simulate(*waiting_second_wave(*gone), m.node("late", 1, at="60s"))
    assert [line["t"] for line in answer.lines("bound", "j-a-0")] == [0.0, 5.0]
    assert answer.at("j-b-0") == 60.0


def test_d3_a_wave_that_was_bound_is_not_cut_off_after_a_restart() -> None:
    lost = m.step("5s", "delete", "Pod", "j-a-1")
    answer = simulate(*waiting_second_wave(lost, m.step("200s", "restart-scheduler")), until="400s")
    assert not answer.lines("evicted")
    assert len(answer.bound()) == 2


def test_g7_a_restart_does_not_forget_that_a_raised_minimum_clears_satisfied() -> None:
    raised = m.step("5s", "patch", "PodGroup", "a", patch={"spec": {"minMember": 4}})
    pods = [m.pod(name, group="a", at=at) for name, at in (("p0", "0s"), ("p1", "0s"), ("q0", "6s"), ("q1", "6s"))]
    lost = m.step("10s", "delete", "Pod", "p1")
    answer = simulate(m.node("n", 2), m.podgroup("a", 2), pods, raised, lost, m.step("20s", "restart-scheduler"))
    assert set(answer.bound()) == {"p0", "p1"}


def test_v5_what_waits_for_a_group_that_went_is_among_the_pending() -> None:
    gone = m.step("5s", "delete", "PodGroup", "a")
    answer = simulate(
        m.node("n", 2),
        m.podgroup("a", 2),
        m.pod("a0", group="a"),
        m.pod("a1", group="a"),
        gone,
        m.pod("a2", group="a", at="6s"),
    )
    assert "does not exist" in answer.why("default/a")


def test_g11_a_raised_minimum_that_was_met_is_known_though_its_last_pod_goes_with_the_scheduler() -> None:
    raised = m.step("3s", "patch", "PodGroup", "a", patch={"spec": {"minMember": 3}})
    pods = [m.pod("a-0", group="a"), m.pod("a-1", group="a"), m.pod("a-2", group="a", at="4s")]
    failed = m.step("6s", "fail-pod", "Pod", "a-0")
    lost = [m.step("9s", "delete", "Pod", "a-2"), m.step("9s", "restart-scheduler"), m.pod("a-3", group="a", at="9s")]
    answer = simulate(m.node("n", 4), m.podgroup("a", 2), pods, raised, failed, *lost)
    assert answer.at("a-3") == 9.0
