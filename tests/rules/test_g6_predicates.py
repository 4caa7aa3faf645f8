"""G6: one story per predicate. The tables of cases are beside each predicate; here it is asked whether all of them
take part, in a gang, through the whole system."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer, waits_because
from support.simulation import simulate

ZONE = "topology.kubernetes.io/zone"


def place(answer: Answer, name: str = "p") -> str:
    return answer.bound().get(name, (0.0, ""))[1]


def required(**expression: Any) -> m.Obj:
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def near(key: str, match: m.Obj, kind: str = "podAffinity") -> m.Obj:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": match}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_g6_readiness() -> None:
    lost = m.node("n")
    lost["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    answer = simulate(lost, m.gang("a", 2), m.step("9s", "recover-node", "Node", "n"))
    assert answer.times("a") == [9.0, 9.0]
    answer = simulate(m.node("n"), m.step("0s", "fail-node", "Node", "n"), m.pod("p", at="1s"))
    assert not answer.bound()
    assert "not ready" in answer.why("default/p")


def test_g6_unschedulable() -> None:
    patch = {"spec": {"unschedulable": None}}
    answer = simulate(m.node("n", unschedulable=True), m.gang("a", 2), m.step("9s", "patch", "Node", "n", patch=patch))
    assert answer.times("a") == [9.0, 9.0]


def test_g6_node_selector() -> None:
    answer = simulate(m.node("n"), m.node("ssd", labels={"disk": "ssd"}), m.pod("p", nodeSelector={"disk": "ssd"}))
    assert place(answer) == "ssd"
    answer = simulate(m.node("n"), m.pod("p", nodeSelector={"disk": "ssd"}))
    assert "1 node(s) didn't match Pod's node affinity/selector" in waits_because(answer.obj("Pod", "p"))
    label = m.step("7s", "patch", "Node", "n", patch={"metadata": {"labels": {"disk": "ssd"}}})
    assert simulate(m.node("n"), m.pod("p", nodeSelector={"disk": "ssd"}), label).at("p") == 7.0


@pytest.mark.parametrize(
    "expression, where",
    [
        ({"key": "zone", "operator": "In", "values": ["b", "c"]}, "n1"),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, "n1"),
        ({"key": "gpu", "operator": "Exists"}, "n0"),
        ({"key": "gpu", "operator": "DoesNotExist"}, "n1"),
        ({"key": "gpu", "operator": "Gt", "values": ["3"]}, "n0"),
        ({"key": "gpu", "operator": "Lt", "values": ["3"]}, ""),
    ],
)
def test_g6_required_node_affinity(expression: m.Obj, where: str) -> None:
    nodes = [m.node("n0", labels={"zone": "a", "gpu": "4"}), m.node("n1", labels={"zone": "b"})]
    assert place(simulate(nodes, m.pod("p", affinity=required(**expression)))) == where


def test_g6_preferred_node_affinity() -> None:
    term = {"weight": 100, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}}
    wish = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    nodes = [m.node("n0", labels={"zone": "a"}), m.node("n1", labels={"zone": "b"})]
    assert place(simulate(nodes, m.pod("p", affinity=wish))) == "n1"
    assert place(simulate(nodes[:1], m.pod("p", affinity=wish))) == "n0"


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute", "PreferNoSchedule"])
def test_g6_taints_and_tolerations(effect: str) -> None:
    tainted = m.node("n0", taints=[{"key": "gpu", "value": "yes", "effect": effect}])
    assert place(simulate(tainted, m.node("n1", 1), m.pod("p"))) == "n1"
    alone = simulate(tainted, m.pod("p"))
    assert place(alone) == ("n0" if effect == "PreferNoSchedule" else "")
    for toleration in ({"operator": "Exists"}, {"key": "gpu", "operator": "Equal", "value": "yes", "effect": effect}):
        assert place(simulate(tainted, m.pod("p", tolerations=[toleration]))) == "n0"
    wrong = {"key": "gpu", "operator": "Equal", "value": "no", "effect": effect}
    if effect != "PreferNoSchedule":
        assert not simulate(tainted, m.pod("p", tolerations=[wrong])).bound()


def test_g6_extended_resources() -> None:
    gpus = m.node("n1", extra={"nvidia.com/gpu": 4})
    answer = simulate(m.node("n0"), gpus, m.gang("a", 2, extra={"nvidia.com/gpu": 2}))
    assert [where for _, where in answer.bound().values()] == ["n1", "n1"]
    answer = simulate(m.node("n0"), gpus, m.gang("a", 3, extra={"nvidia.com/gpu": 2}))
    assert not answer.bound()
    assert "2 Insufficient nvidia.com/gpu" in answer.why("default/a")


def test_g6_pod_count() -> None:
    answer = simulate(m.node("n", pods=2), m.gang("a", 3, cpu=None))
    assert not answer.bound()
    assert "1 Too many pods" in answer.why("default/a")


def test_g6_host_ports() -> None:
    def web(name: str, **port: Any) -> m.Obj:
        found = m.pod(name, labels={"app": "web"})
        found["spec"]["containers"][0]["ports"] = [{"containerPort": 80, **port}]
        return found

    answer = simulate(m.node("n"), web("a", hostPort=80), web("b", hostPort=80, protocol="UDP"), web("c", hostPort=80))
    assert sorted(answer.bound()) == ["a", "b"]
    assert "free ports" in waits_because(answer.obj("Pod", "c"))
    freed = simulate(m.node("n"), web("a", hostPort=80), web("c", hostPort=80), m.step("8s", "delete", "Pod", "a"))
    assert freed.at("c") == 8.0


def test_g6_host_ports_within_a_gang() -> None:
    def member(index: int) -> m.Obj:
        found = m.pod(f"a-{index}", group="a")
        found["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
        return found

    members = [m.gang("a", 0, minimum=3)[0], *(member(index) for index in range(3))]
    assert not simulate(m.node("n0"), m.node("n1"), members).bound()
    answer = simulate(m.node("n0"), m.node("n1"), members, m.node("n2", at="5s"))
    assert sorted(where for _, where in answer.bound().values()) == ["n0", "n1", "n2"]


def test_g6_pod_affinity() -> None:
    nodes = [m.node("n0", labels={ZONE: "a"}), m.node("n1", labels={ZONE: "b"})]
    db = m.pod("db", labels={"app": "db"}, nodeName="n1")
    follower = m.pod("p", affinity=near(ZONE, {"app": "db"}))
    assert place(simulate(nodes, db, follower)) == "n1"
    assert not simulate(nodes, follower).bound()
    late = m.pod("db", labels={"app": "db"}, at="4s", nodeName="n1")
    assert simulate(nodes, follower, late).at("p") == 4.0


def test_g6_a_gang_may_have_affinity_to_itself() -> None:
    nodes = [
        m.node("n0", 2, labels={ZONE: "a"}),
        m.node("n1", 3, labels={ZONE: "b"}),
        m.node("n2", 1, labels={ZONE: "b"}),
    ]
    answer = simulate(nodes, m.gang("a", 4, labels={"app": "a"}, affinity=near(ZONE, {"app": "a"})))
    assert sorted(where for _, where in answer.bound().values()) in ([], ["n1", "n1", "n1", "n2"])


def test_g6_pod_anti_affinity_both_ways() -> None:
    apart = near("kubernetes.io/hostname", {"app": "a"}, "podAntiAffinity")
    nodes = [m.node(f"n{i}") for i in range(3)]
    answer = simulate(nodes, m.gang("a", 3, labels={"app": "a"}, affinity=apart))
    assert sorted(where for _, where in answer.bound().values()) == ["n0", "n1", "n2"]
    answer = simulate(nodes, m.gang("a", 4, labels={"app": "a"}, affinity=apart))
    assert not answer.bound()
    assert "anti-affinity" in answer.why("default/a")
    # One that runs turns away those that do not mind themselves.
    guard = m.pod("guard", affinity=near("kubernetes.io/hostname", {"app": "p"}, "podAntiAffinity"), nodeName="n0")
    assert not simulate(m.node("n0"), guard, m.pod("p", labels={"app": "p"})).bound("p")


def test_g6_topology_spread() -> None:
    def spread(when: str) -> list[m.Obj]:
        constraint = {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": "a"}},
        }
        return m.gang("a", 6, labels={"app": "a"}, topologySpreadConstraints=[constraint])

    nodes = [m.node("n0", 9, labels={ZONE: "a"}), m.node("n1", 2, labels={ZONE: "b"})]
    assert not simulate(nodes, spread("DoNotSchedule")).bound()
    answer = simulate(nodes, spread("DoNotSchedule"), m.node("n2", 1, labels={ZONE: "b"}, at="3s"))
    assert [where for _, where in answer.bound("a").values()].count("n0") == 3
    assert len(simulate(nodes, spread("ScheduleAnyway")).bound()) == 6


def claim(name: str, volume: str = "", **spec: Any) -> m.Obj:
    found = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    if volume:
        found["volumeName"] = volume
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": found,
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str, host: str, of: str) -> m.Obj:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "default", "name": of},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
        "status": {"phase": "Bound"},
    }


def uses(name: str) -> list[m.Obj]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def test_g6_a_bound_volume_pins_its_pod() -> None:
    disk = [volume("pv", "n1", "data"), claim("data", "pv")]
    answer = simulate([m.node(f"n{i}") for i in range(3)], disk, m.pod("p", volumes=uses("data")))
    assert place(answer) == "n1"
    answer = simulate(m.node("n0"), disk, m.pod("p", volumes=uses("data")))
    assert "volume node affinity conflict" in answer.why("default/p")


def test_g6_a_claim_that_does_not_exist_is_waited_for() -> None:
    answer = simulate(m.node("n"), m.pod("p", volumes=uses("data")))
    assert not answer.bound()
    assert "data" in answer.why("default/p")
    arrives = m.step("6s", "create", object=claim("data", "pv"))
    assert simulate(m.node("n"), volume("pv", "n", "data"), m.pod("p", volumes=uses("data")), arrives).at("p") == 6.0


LAZY: m.Obj = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "lazy"},
    "provisioner": "example.com/disk",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def test_g6_a_storage_class_that_went_is_waited_for() -> None:
    gone = LAZY | {"metadata": {"name": "lazy", "annotations": {"sim.enbloc.dev/delete-at": "5s"}}}
    answer = simulate(
        gone, claim("data", storageClassName="lazy"), m.node("n"), m.pod("p", volumes=uses("data"), at="6s")
    )
    assert not answer.bound()
    assert 'storageclass.storage.k8s.io "lazy" not found' in answer.why("default/p")


def test_g6_wait_for_first_consumer_gets_its_selected_node() -> None:
    waits = claim("data", storageClassName="lazy")
    answer = simulate(LAZY, waits, m.node("n0", 1), m.node("n1", 4), m.pod("p", 2, volumes=uses("data")))
    assert place(answer) == "n1"
    notes = answer.obj("PersistentVolumeClaim", "data")["metadata"]["annotations"]
    assert notes["volume.kubernetes.io/selected-node"] == "n1"


def test_g6_read_write_once_pod() -> None:
    disk = [volume("pv", "n", "data"), claim("data", "pv", accessModes=["ReadWriteOncePod"])]
    first = m.pod("a", volumes=uses("data"), run_time="10s")
    answer = simulate(m.node("n"), disk, first, m.pod("b", volumes=uses("data"), at="1s"))
    assert (answer.at("a"), answer.at("b")) == (0.0, 10.0)


@pytest.mark.parametrize(
    "more, cpu",
    [
        ({"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]}, 3),
        ({"initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}]}, 3),
        (
            {
                "initContainers": [
                    {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}},
                    {"name": "init", "resources": {"requests": {"cpu": "3"}}},
                ]
            },
            5,
        ),
        ({"overhead": {"cpu": "1500m"}}, "2500m"),
    ],
)
def test_g6_init_containers_sidecars_and_overhead_are_part_of_the_request(more: m.Obj, cpu: Any) -> None:
    less = "2499m" if cpu == "2500m" else cpu - 1
    assert simulate(m.node("n", cpu), m.pod("p", **more)).bound()
    assert not simulate(m.node("n", less), m.pod("p", **more)).bound()


def test_g6_scheduling_gates_hold_a_gang_until_they_are_removed() -> None:
    gated = m.pod("a-1", group="a", schedulingGates=[{"name": "example.com/wait"}])
    lift = m.step("12s", "patch", "Pod", "a-1", patch={"spec": {"schedulingGates": None}})
    answer = simulate(m.node("n"), m.gang("a", 1, minimum=2), gated, lift)
    assert answer.times("a") == [12.0, 12.0]
    alone = m.pod("p", schedulingGates=[{"name": "example.com/wait"}])
    assert not simulate(m.node("n"), alone).bound()


def test_g6_a_gang_that_fits_nowhere_together_leaves_no_trace() -> None:
    """What a failed attempt placed for the time being (ports, affinities, counts) is given back."""
    apart = near("kubernetes.io/hostname", {"app": "a"}, "podAntiAffinity")
    answer = simulate(
        m.node("n0", 2),
        m.node("n1", 2),
        m.gang("a", 3, labels={"app": "a"}, affinity=apart),
        m.gang("b", 2, labels={"app": "a"}, affinity=apart, at="1s"),
        m.pods(2, "p", at="2s"),
    )
    assert answer.times("b") == [1.0, 1.0]
    assert answer.times("p") == [2.0, 2.0]
    assert not answer.bound("a")


def test_g6_a_pod_that_fits_beside_others_of_its_gang_once_those_are_placed() -> None:
    """Any two of three must start. The first must be beside pods of the others' kind, of which there are none yet."""
    beside = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "b"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    labels = {"kubernetes.io/hostname": "n"}
    answer = simulate(
        m.node("n", 2, labels=labels),
        m.podgroup("g", 2),
        m.pod("g-0", group="g", labels={"app": "a"}, affinity=beside),
        m.pod("g-1", group="g", labels={"app": "b"}),
        m.pod("g-2", 2, group="g", labels={"app": "b"}),
    )
    assert answer.bound("g-") == {"g-0": (0.0, "n"), "g-1": (0.0, "n")}


def test_g6_a_pod_that_must_be_away_from_one_that_comes_after_it_in_its_gang() -> None:
    """`g-1` and `g-2` are alike but for the label that `g-0` is to be away from."""
    away = near("kubernetes.io/hostname", {"app": "a"}, "podAntiAffinity")
    gang = [
        m.podgroup("g", 3),
        m.pod("g-0", group="g", affinity=away),
        m.pod("g-1", group="g"),
        m.pod("g-2", group="g", labels={"app": "a"}),
    ]
    assert not simulate(m.node("m", 3), gang).bound("g-")
    where = simulate(m.node("m", 2), m.node("n", 2), gang).nodes("g-")
    assert len(where) == 3
    assert where["g-2"] != where["g-0"]


def test_g6_a_role_that_must_be_beside_one_that_comes_after_it() -> None:
    """`a-0` and `a-1` come before `b-0`, beside which they must be: they are placed once `b-0` is."""
    beside = near("kubernetes.io/hostname", {"volcano.sh/task-spec": "b"}, "podAffinity")
    roles = [m.role("a", 2, affinity=beside), m.role("b", 1)]
    answer = simulate(m.node("m", 2), m.node("n", 3), m.job("j", *roles))
    assert answer.nodes("j-") == {"j-a-0": "n", "j-a-1": "n", "j-b-0": "n"}
