"""G9: an unchanged gang on an unchanged cluster is not tried again; what changed wakes those it could help."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from enbloc.config import Config
from enbloc.engine.core import rediagnose, spine
from enbloc.engine.features.evict.planner import Planner
from enbloc.runtime.control_plane import ControlPlane
from enbloc.sim.simulation import control_plane
from support import manifests as m
from support.simulation import simulate


class Watched:
    """Counts the attempts at each gang but for those of `rediagnose`, and keeps the control plane for a look at the
    end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.attempts: Counter[str] = Counter()
        self.planes: list[ControlPlane] = []
        real = spine.attempt
        dry = rediagnose.attempt_unit

        def attempt(placer: Any, tried: Any, *rest: Any, **how: Any) -> Any:
            self.attempts[tried[0].gang.spec.title] += 1
            return real(placer, tried, *rest, **how)

        def attempt_dry(*args: Any, **how: Any) -> Any:
            with monkeypatch.context() as patched:
                patched.setattr(spine, "attempt", real)
                return dry(*args, **how)

        monkeypatch.setattr(spine, "attempt", attempt)
        monkeypatch.setattr(rediagnose, "attempt_unit", attempt_dry)

    def plane(self, store: Any, config: Config) -> Any:
        made = control_plane(store, config)
        assert isinstance(made, ControlPlane)
        self.planes.append(made)
        return made

    def decided_when_forced(self) -> list[Any]:
        """What the engine would decide if it tried every gang once more."""
        engine = self.planes[-1].scheduler.engine
        now = engine.now_ns
        assert engine.run(now) == []
        engine.force()
        return engine.run(now)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


HEARTBEAT = {
    "metadata": {"annotations": {"beat": "1"}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}
POD_LABEL = {"metadata": {"annotations": {"seen": "yes"}}}


@pytest.mark.parametrize(
    "event",
    [
        [m.step("10s", "patch", "Node", "n", patch=HEARTBEAT)],
        [m.step("10s", "patch", "Pod", "runs", patch=POD_LABEL)],
        [m.pod("foreign", 1, scheduler="other", at="10s")],
        [m.pod("ends", 1, nodeName="small", run_time="10s")],
        [m.pod("small-one", 1, at="10s", nodeName="small")],
        m.gang("b", 9, cpu=9, at="10s"),
    ],
    ids=[
        "heartbeat",
        "annotation",
        "foreign pod",
        "room where it fits not",
        "less room",
        "another that waits",
    ],
)
def test_g9_what_cannot_help_wakes_no_gang(watched: Watched, event: list[m.Obj]) -> None:
    docs = [
        m.node("n", 4),
        m.node("small", 1, labels={"small": "yes"}),
        m.pod("runs", 1, nodeName="n"),
        *m.gang("a", 2, cpu=2),
    ]
    answer = simulate(docs, event, plane=watched.plane, until="1h")
    assert not answer.bound("a")
    assert watched.attempts["default/a"] == 1
    assert watched.decided_when_forced() == []


@pytest.mark.parametrize(
    "event",
    [
        [m.node("more", 4, at="10s")],
        [m.step("10s", "delete", "Pod", "runs")],
        [m.step("10s", "fail-pod", "Pod", "runs")],
        [m.step("10s", "patch", "Node", "n", patch={"status": {"allocatable": {"cpu": "5"}}})],
        [m.step("10s", "patch", "Node", "shut", patch={"spec": {"unschedulable": None}})],
        [m.step("10s", "patch", "Node", "dirty", patch={"spec": {"taints": None}})],
        [m.step("10s", "patch", "PodGroup", "a", patch={"spec": {"minMember": 1}})],
    ],
    ids=["node", "deletion", "failure", "growth", "uncordoned", "taint lifted", "lower minimum"],
)
def test_g9_what_could_help_wakes(watched: Watched, event: list[m.Obj]) -> None:
    docs = [
        m.node("n", 4),
        m.node("shut", 4, unschedulable=True),
        m.node("dirty", 4, taints=[{"key": "k", "effect": "NoSchedule"}]),
        m.pod("runs", 1, nodeName="n"),
        *m.gang("a", 2, cpu=2),
    ]
    answer = simulate(docs, event, plane=watched.plane)
    assert answer.at("a-0") == 10.0
    assert watched.attempts["default/a"] == 2
    assert watched.decided_when_forced() == []


def beside(app: str) -> m.Obj:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_g9_a_pod_that_must_be_beside_another_is_tried_when_that_is_placed(watched: Watched) -> None:
    """Each is beside the next. In the first cycle the last one alone fits; each placement helps one more."""
    pods = [m.pod(f"p{n}", labels={"app": f"a{n}"}, affinity=beside(f"a{n + 1}") if n < 9 else None) for n in range(10)]
    absent = m.pod("q", affinity=beside("absent"))
    answer = simulate(m.node("n", 16), pods, absent, plane=watched.plane)
    assert len(answer.bound("p")) == 10
    assert watched.attempts == {**{f"default/p{n}": 2 for n in range(9)}, "default/p9": 1, "default/q": 1}
    assert watched.decided_when_forced() == []


PER_HOST = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [PER_HOST]}}


@pytest.mark.parametrize("looks", [{}, {"affinity": APART}], ids=["plain", "anti-affinity"])
@pytest.mark.parametrize("again", ["10s", "11s"], ids=["at once", "later"])
def test_g9_a_pod_recreated_under_its_name_with_another_size_is_tried(
    watched: Watched, looks: dict[str, Any], again: str
) -> None:
    """A pod, and a member of a gang of two."""
    web = {"app": "web"}
    answer = simulate(
        [m.node(f"n{index}", 4) for index in range(3)],
        m.pod("p", 8, delete_at="10s", labels=web, **looks),
        m.pod("p", 2, at=again, labels=web, **looks),
        m.gang("a", 0, minimum=2),
        m.pod("a-0", 1, group="a", labels=web, **looks),
        m.pod("a-1", 8, group="a", delete_at="10s", labels=web, **looks),
        m.pod("a-1", 2, group="a", at=again, labels=web, **looks),
        plane=watched.plane,
        until="20s",
    )
    assert {at for at, _ in answer.bound("").values()} == {float(again[:-1])}
    assert len(answer.bound("")) == 3
    assert watched.decided_when_forced() == []


def away_from(app: str, key: str = "zone") -> m.Obj:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(app: str) -> list[m.Obj]:
    rule = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "topologyKey": "zone"}
    return [{**rule, "labelSelector": {"matchLabels": {"app": app}}}]


def test_g9_a_pod_alike_but_for_labels_is_in_another_equivalence_class(watched: Watched) -> None:
    """`shy` comes when both wait already, and keeps only `web` away."""
    answer = simulate(
        m.node("n", 8, labels={"zone": "a"}),
        m.pod("runs", 7, run_time="10s"),
        m.pod("web", 4, labels={"app": "web"}, at="1s"),
        m.pod("db", 4, labels={"app": "db"}, at="2s"),
        m.pod("shy", 1, at="5s", affinity=away_from("web")),
        plane=watched.plane,
        until="20s",
    )
    assert answer.at("db") == 10.0
    assert not answer.bound("web")
    assert watched.decided_when_forced() == []


def test_g9_a_pod_that_anti_affinity_keeps_away_is_woken_when_the_other_leaves_another_node(watched: Watched) -> None:
    """`shy` comes when `web` waits already. Its own node is full without it too."""
    answer = simulate(
        m.node("n", 4, labels={"zone": "a"}),
        m.pod("full", 3, nodeName="n"),
        m.node("m", 4, labels={"zone": "a"}),
        m.pod("runs", 4, nodeName="m", run_time="10s"),
        m.pod("web", 4, labels={"app": "web"}, at="1s"),
        m.pod("shy", 1, at="5s", delete_at="20s", affinity=away_from("web")),
        plane=watched.plane,
    )
    assert answer.bound("web") == {"web": (20.0, "m")}
    assert watched.decided_when_forced() == []


def _beside(app: str) -> dict[str, Any]:
    """Must be in a zone with a pod of that app."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone"}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread(app: str) -> dict[str, Any]:
    """At most one more in its zone, a, than in the others."""
    constraint = {
        "labelSelector": {"matchLabels": {"app": app}},
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeAffinityPolicy": "Ignore",
    }
    return {"nodeSelector": {"zone": "a"}, "topologySpreadConstraints": [constraint]}


def _helps(app: str, zone: str) -> m.Obj:
    return m.pod(app, 1, at="10s", labels={"app": app}, nodeSelector={"zone": zone}, priority="high")


@pytest.mark.parametrize("queue", ["default", "other"])
@pytest.mark.parametrize(
    "waits, helps",
    [
        (_beside("db"), _helps("db", "a")),
        (_spread("web"), _helps("web", "b")),
    ],
    ids=["affinity", "spread"],
)
def test_g8_g9_a_gang_that_a_pod_placed_in_this_cycle_helps_comes_before_those_behind_it(
    waits: dict[str, Any], helps: m.Obj, queue: str
) -> None:
    """`helps` is first by priority; `behind`, in line since 10s, would take the room of `waits`. The share of the other
    queue is higher than that of the default one before `helps` starts, and lower then."""
    web = m.pod("first-web", 1, nodeName="a", labels={"app": "web"})
    runs = m.pod("runs", "1500m", nodeName="c", queue="other")
    answer = simulate(
        m.priority_class("high", 10),
        m.queue("other"),
        [m.node("a", 4, labels={"zone": "a"}), m.node("b", 1, labels={"zone": "b"}), m.node("c", "1500m")],
        [web, runs, m.pod("waits", 2, labels={"app": "web"}, queue=queue, **waits), helps],
        m.pod("behind", 2, at="10s"),
        until="20s",
    )
    assert answer.at("waits") == 10.0
    assert answer.at("behind") is None


def test_g9_gangs_that_select_their_own_label_are_tried_once_more(watched: Watched) -> None:
    """Ten pods of the label start in one cycle, and ten gangs that must be beside such pods lack room: each is tried
    when it comes, and once they are placed."""
    web = {"app": "web"}
    large = [m.pod(f"large-{index}", 8, labels=web, **_beside("web")) for index in range(10)]
    small = [m.pod(f"small-{index}", "100m", labels=web, at="10s", priority="high") for index in range(10)]
    node, high = m.node("a", 4, labels={"zone": "a"}), m.priority_class("high", 10)
    answer = simulate(node, high, large, small, plane=watched.plane, until="20s")
    assert len(answer.bound("small")) == 10
    assert [watched.attempts[f"default/large-{index}"] for index in range(10)] == [2] * 10
    assert watched.decided_when_forced() == []


@pytest.mark.parametrize(
    "waits",
    [
        [m.pod("p", 2, labels={"app": "web"}, topologySpreadConstraints=spread("web"))],
        m.koordinator_gang(
            "p", 1, 1, 2, mode=m.NON_STRICT, labels={"app": "web"}, topologySpreadConstraints=spread("web")
        ),
    ],
    ids=["pod", "group"],
)
@pytest.mark.parametrize("how", ["relabelled", "replaced"])
def test_g9_a_pod_whose_labels_changed_is_tried(watched: Watched, waits: list[m.Obj], how: str) -> None:
    nodes = [m.node("n", 4, labels={"zone": "a"}), m.node("small", 1, labels={"zone": "b"})]
    name = waits[0]["metadata"]["name"]
    if how == "relabelled":
        change = [m.step("10s", "patch", "Pod", name, patch={"metadata": {"labels": {"app": "no"}}})]
    else:
        metadata = waits[0]["metadata"]
        at = {**metadata.get("annotations", {}), "sim.enbloc.dev/at": "10s"}
        again = {**waits[0], "metadata": {**metadata, "labels": {"app": "no"}, "annotations": at}}
        change = [m.step("10s", "delete", "Pod", name), again]
    runs = m.pod("runs", 1, nodeName="n", labels={"app": "web"})
    answer = simulate(nodes, runs, waits, change, plane=watched.plane, until="20s")
    assert answer.at(name) == 10.0
    assert watched.decided_when_forced() == []


@pytest.mark.parametrize("mode", ["Strict", m.NON_STRICT])
def test_g9_a_pod_first_selected_now_whose_labels_change_is_tried(watched: Watched, mode: str) -> None:
    """When `p` was queued no pod selected it yet: `early` was placed in that very cycle."""
    answer = simulate(
        m.node("n", 4, labels={"zone": "a"}),
        m.pod("early", 1, affinity=away_from("web")),
        m.koordinator_gang("p", 1, 1, 2, mode=mode, labels={"app": "web"}),
        m.step("8s", "patch", "Pod", "p-0", patch={"metadata": {"labels": {"app": "no"}}}),
        plane=watched.plane,
        until="20s",
    )
    assert answer.at("p-0") == 8.0
    assert watched.decided_when_forced() == []


# ---- a gang that found no victims, and one that found no nodes to reserve

LAZY: m.Obj = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "lazy"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM: m.Obj = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "lazy",
    },
}
VOLUME: m.Obj = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk"},
    "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "lazy"},
    "status": {"phase": "Available"},
}


def preempting_and_reserving(after: int) -> m.Obj:
    arguments = {"starvingJobTimeThreshold": after, "reservedNodePercent": 100}
    actions: list[m.Obj] = [{"name": name} for name in ("allocate", "backfill", "preempt")]
    return {"actions": [*actions, {"name": "reserve", "arguments": arguments}]}


def test_g9_a_volume_that_comes_late_lets_its_pod_preempt(watched: Watched) -> None:
    uses = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    answer = simulate(
        m.HIGH_LOW,
        LAZY,
        CLAIM,
        m.node("n", 4),
        m.pod("runs", 4, priority="low"),
        m.pod("p", 2, priority="high", at="2s", volumes=uses),
        m.step("10s", "create", object=VOLUME),
        plane=watched.plane,
    )
    assert answer.at("p") == 10.0
    assert watched.decided_when_forced() == []


def test_g9_a_label_of_a_namespace_lets_pods_that_select_it_preempt(watched: Watched) -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "near"}},
        "namespaceSelector": {"matchLabels": {"team": "a"}},
    }
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    label = m.step("10s", "patch", "Namespace", "other", patch={"metadata": {"labels": {"team": "a"}}})
    answer = simulate(
        m.HIGH_LOW,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}},
        m.node("n", 4, labels={"zone": "a"}),
        m.pod("runs", 3, priority="low"),
        m.pod("near", 1, nodeName="n", priority="high", namespace="other", labels={"app": "near"}),
        m.pod("p", 2, priority="high", at="2s", affinity=near),
        label,
        plane=watched.plane,
    )
    assert answer.at("p") == 10.0
    assert watched.decided_when_forced() == []


def test_g9_a_group_one_of_whose_gangs_asks_for_less_preempts(watched: Watched) -> None:
    """The gang that changed is not the one that stands in line for both."""
    group = ["default/a", "default/b"]
    less = m.step("10s", "patch", "PodGroup", "b", patch={"spec": {"minMember": 1}})
    less["target"]["apiVersion"] = m.SIGS
    answer = simulate(
        m.HIGH_LOW,
        m.node("n", 4),
        m.pod("runs", 4, priority="low"),
        m.sigs_podgroup("a", 1, groups=group),
        m.labelled_pods("a", 1, cpu=2, priority="high", at="1s"),
        m.sigs_podgroup("b", 2, groups=group),
        m.labelled_pods("b", 2, cpu=2, priority="high", at="1s"),
        less,
        plane=watched.plane,
    )
    assert answer.at("a-0") == answer.at("b-0") == 10.0
    assert watched.decided_when_forced() == []


def test_g9_a_reservation_that_ends_lets_others_preempt_there(watched: Watched) -> None:
    over = m.step("10s", "patch", "PodGroup", "starves", patch={"spec": {"minMember": 2}})
    answer = simulate(
        over,
        m.HIGH_LOW,
        {**m.HIGH_LOW[0], "metadata": {"name": "nonpreempting"}, "preemptionPolicy": "Never"},
        m.node("n", 4),
        m.pod("runs", 3, priority="low"),
        m.gang("starves", 1, cpu=4, group_priority="nonpreempting", at="1s"),
        m.pod("p", 2, priority="high", at="8s"),
        config=preempting_and_reserving(5),
        plane=watched.plane,
        until="12s",
    )
    assert answer.at("p") == 10.0


def test_g9_less_use_of_a_queue_wakes_those_it_held_back(watched: Watched) -> None:
    capped = m.queue("q", capability={"cpu": "2"})
    answer = simulate(
        m.node("n", 8),
        capped,
        m.gang("a", 2, queue="q", run_time="10s"),
        m.gang("b", 2, queue="q", at="1s"),
        plane=watched.plane,
    )
    assert answer.times("b") == [10.0, 10.0]
    assert watched.decided_when_forced() == []


def test_g9_gangs_that_are_alike_are_not_tried_one_by_one(watched: Watched) -> None:
    simulate(m.node("n", 1), [doc for i in range(50) for doc in m.gang(f"a{i}", 2)], plane=watched.plane)
    assert sum(watched.attempts.values()) == 1


def test_g9_after_quiet_forcing_every_gang_decides_nothing(watched: Watched) -> None:
    answer = simulate(
        m.node("n", 4),
        m.queue("f", dequeueStrategy="fifo"),
        m.queue("q", capability={"cpu": "1"}),
        m.job("a", m.role("w", 9)),
        m.job("b", m.role("w", 6, 2)),
        m.gang("c", 3),
        m.gang("d", 3, minimum=4),
        m.gang("e", 8, queue="f"),
        m.gang("g", 1, queue="f", at="1s"),
        m.gang("h", 2, queue="q"),
        m.pods(2, "free", None),
        m.pod("lonely", 1, nodeSelector={"no": "such"}),
        plane=watched.plane,
        until="1h",
    )
    assert len(answer.data["pending"]) >= 5
    assert watched.decided_when_forced() == []
    assert not watched.planes[-1].scheduler.engine.busy()


@pytest.mark.parametrize("make", [m.queue_job, m.job], ids=["queue-job", "job"])
def test_g9_a_pod_that_a_quota_refuses_again_and_again_costs_no_plan(
    monkeypatch: pytest.MonkeyPatch, watched: Watched, make: Any
) -> None:
    """The controller tries to create it anew, later every 5 min: for gangs that wait no eviction is planned then."""
    plans: Counter[str] = Counter()
    find = Planner.find

    def counted(planner: Planner, requests: Any, *rest: Any) -> Any:
        plans[requests[0].gang.spec.title] += 1
        return find(planner, requests, *rest)

    monkeypatch.setattr(Planner, "find", counted)

    def run(until: str) -> tuple[Counter[str], Counter[str]]:
        plans.clear()
        watched.attempts.clear()
        simulate(
            m.HIGH_LOW,
            m.resource_quota(5),
            m.node("n", 4),
            m.pod("low", 2, priority="low"),
            m.pod("high", 2, priority="high"),
            m.gang("waits", 1, cpu=3, group_priority="high", at="1s"),
            make("j", m.role("w", 4), minimum=4, at="2s"),
            config={"actions": "allocate, backfill, preempt, reclaim, reserve"},
            plane=watched.plane,
            until=until,
        )
        return Counter(plans), Counter(watched.attempts)

    soon = run("10s")
    assert soon[0]["default/waits"], "its evictions were planned, in vain"
    assert run("24h") == soon
