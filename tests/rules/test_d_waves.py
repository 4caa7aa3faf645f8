"""Rules D3, D4 and D5: waves as gangs of their own, and a whole job as one gang over its waves."""

from __future__ import annotations

from typing import Any

from stories import Answer, job, node, pod, role, simulate, step

WHOLE = {"enbloc.dev/depends-on-gang": "true"}


def after(dependency: str, made: dict[str, Any]) -> dict[str, Any]:
    return {**made, "dependsOn": {"name": [dependency]}}


def two_waves(name: str = "j", *, whole: bool = True, start: str = "10s", **options: Any) -> dict[str, Any]:
    """A master that takes its time to start, and two workers that wait for it."""
    made = job(
        name,
        role("master", 1, run="60s", start=start),
        after("master", role("work", 2, run="30s", **options)),
    )
    if whole:
        made["metadata"].setdefault("annotations", {}).update(WHOLE)
    return made


def claims(answer: Answer, name: str = "j") -> str:
    return answer.group_of(name)["metadata"].get("annotations", {}).get("enbloc.dev/claims", "")


def test_d3_each_wave_is_a_gang_of_its_own() -> None:
    answer = simulate(node("n", 2), two_waves(whole=False), pod("small", cpu=1, run="100s", at="20s"))
    assert answer.at("j-master-0") == 0.0
    assert answer.at("j-work-0") is None or answer.at("j-work-0") == answer.at("j-work-1")


def test_d3_a_wave_that_does_not_fit_waits_whole() -> None:
    answer = simulate(node("n", 2), two_waves(whole=False), node("late", 1, at="40s"))
    assert {answer.at("j-work-0"), answer.at("j-work-1")} == {40.0}
    assert answer.at("j-master-0") == 0.0


def test_d4_surplus_of_an_earlier_wave_leaves_room_for_the_next() -> None:
    master = role("master", 3, 1, run="60s", start="10s")
    made = job("j", master, after("master", role("work", 2, run="30s")))
    answer = simulate(node("n", 3), made)
    assert {answer.at("j-work-0"), answer.at("j-work-1")} == {10.0}
    assert answer.at("j-master-1") == 40.0, "only when the workers are through"


def test_d5_the_first_wave_starts_only_if_all_waves_fit() -> None:
    answer = simulate(node("n", 2), two_waves(), node("late", 1, at="30s"))
    assert answer.at("j-master-0") == 30.0
    assert {answer.at("j-work-0"), answer.at("j-work-1")} == {40.0}
    before = simulate(node("n", 2), two_waves())
    assert "role work" in before.why("default/j")
    assert not before.bound()


def test_d5_nobody_else_uses_the_room_of_later_waves() -> None:
    thief = pod("thief", cpu=1, run="5s", at="2s")
    answer = simulate(node("n", 3), two_waves(), thief)
    assert {answer.at("j-work-0"), answer.at("j-work-1")} == {10.0}
    assert answer.at("thief") == 40.0, "when the workers have ended"
    without = simulate(node("n", 3), two_waves(whole=False), thief)
    assert without.at("thief") == 2.0


def test_d5_the_claim_is_written_down_and_used_up() -> None:
    midway = simulate(node("n", 3), two_waves(), until="5s")
    assert '"work":{"n":2}' in claims(midway)
    assert not claims(simulate(node("n", 3), two_waves()))


def test_d5_survives_a_restart_of_the_scheduler() -> None:
    thief = pod("thief", cpu=1, run="5s", at="3s")
    answer = simulate(node("n", 3), two_waves(), step("2s", "restart-scheduler"), thief)
    assert {answer.at("j-work-0"), answer.at("j-work-1")} == {10.0}
    assert answer.at("thief") == 40.0


def test_d5_ends_at_its_deadline() -> None:
    thief = pod("thief", cpu=1, run="500s", at="3s")
    config = {"dependsOn": {"gangDeadline": "20s"}}
    answer = simulate(node("n", 3), two_waves(start="60s"), thief, config=config, until="100s")
    assert answer.at("thief") == 20.0
    assert not claims(answer)
    assert any(event["reason"] == "ClaimExpired" for event in answer.all("Event"))


def test_d5_ends_with_the_job() -> None:
    made = two_waves(start="60s")
    made["metadata"]["annotations"]["sim.enbloc.dev/delete-at"] = "15s"
    answer = simulate(node("n", 3), made, pod("thief", cpu=3, run="5s", at="3s"))
    assert answer.at("thief") == 15.0


def test_d5_a_node_that_goes_takes_the_claim_with_it() -> None:
    nodes = [node("a", 1), node("b", 2, gone="5s")]
    answer = simulate(nodes, two_waves(), until="30s")
    assert not claims(answer)
    assert any(event["reason"] == "ClaimDropped" for event in answer.all("Event"))


def test_d5_three_waves_keep_room_for_the_last() -> None:
    made = job(
        "j",
        role("a", 1, run="100s", start="10s"),
        after("a", role("b", 1, run="100s", start="10s")),
        after("b", role("c", 1, run="100s")),
    )
    made["metadata"].setdefault("annotations", {}).update(WHOLE)
    answer = simulate(node("n", 3), made, [pod(f"thief-{i}", cpu=1, run="5s", at=f"{i}s") for i in range(1, 15, 6)])
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
    answer = simulate(volume, claim, node("m", 4), node("n", 16), made)
    assert {answer.lines("bound", f"j-{name}")[0]["node"] for name in ("master-0", "work-0", "work-1")} == {"m"}
    assert answer.at("j-work-0") == 10.0
    dropped = [event for event in answer.all("Event") if event["reason"] == "ClaimDropped"]
    assert "differs from its template" in dropped[0]["message"]
    assert not claims(answer)
