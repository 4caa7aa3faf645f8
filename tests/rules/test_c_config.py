"""C: what Volcano's users write in a config works here, seen in what a simulation does."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from enbloc.api.meta import Obj
from enbloc.config import ConfigError, parse
from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

CLASSES = [m.priority_class("high", 1000), m.priority_class("low", 10)]


def config(*plugins: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    listed = [{"name": plugin} if isinstance(plugin, str) else plugin for plugin in plugins]
    return {"actions": "enqueue, allocate, backfill", "tiers": [{"plugins": listed}], **more}


def packed(answer: Answer, prefix: str = "") -> Counter[str]:
    return Counter(answer.nodes(prefix).values())


def problems(data: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parse(data)
    return dict(caught.value.problems)


# ---- actions


@pytest.mark.parametrize(
    "actions",
    [
        "enqueue, allocate, backfill",
        "enqueue,allocate,backfill,",
        ["enqueue", "allocate", "backfill"],
        [{"name": "enqueue"}, {"name": "allocate"}, {"name": "backfill", "arguments": {}}],
    ],
)
def test_c_actions_as_a_string_or_a_list(actions: Any) -> None:
    answer = simulate(m.node("n"), m.one_pod_job("j"), m.pod("be", cpu=None, memory=None), config={"actions": actions})
    assert set(answer.first_bound()) == {"j-w-0", "be"}


def test_c_only_the_actions_named_run() -> None:
    assert not simulate(m.node("n"), m.pod("p"), config={"actions": "enqueue"}).first_bound()
    answer = simulate(m.node("n"), m.one_pod_job("j"), config={"actions": "enqueue"})
    assert answer.pods() == ["j-w-0"], "enqueued, its pods created, never placed"
    assert answer.group_of("j")["status"]["phase"] == "Inqueue"
    answer = simulate(m.node("n", 2), m.one_pod_job("j", 4), config={"actions": "allocate"})
    assert answer.pods() == ["j-w-0"], "without enqueue every gang is enqueued"
    assert not answer.first_bound()


def test_c_without_backfill_best_effort_pods_are_allocated() -> None:
    answer = simulate(m.node("n"), m.pod("be", cpu=None, memory=None), config={"actions": "allocate"})
    assert set(answer.first_bound()) == {"be"}


def test_c_gang_aliases_mean_the_plain_actions() -> None:
    parsed = parse({"actions": "enqueue, allocate, gangpreempt, gangreclaim, backfill"})
    assert [action.name for action in parsed.actions] == ["enqueue", "allocate", "preempt", "reclaim", "backfill"]


def test_c_default_actions() -> None:
    names = [action.name for action in parse(None).actions]
    assert names == ["enqueue", "allocate", "backfill", "preempt", "reclaim", "reserve"]


def test_c_unknown_names_are_errors_that_list_the_known_ones() -> None:
    found = problems({"actions": "enqueue, alocate", "tiers": [{"plugins": [{"name": "gangg"}]}]})
    assert "'alocate'" in found["actions"] or '"alocate"' in found["actions"]
    for name in ("enqueue", "allocate", "backfill", "preempt", "reclaim", "reserve"):
        assert name in found["actions"]
    message = found["tiers[0].plugins[0].name"]
    for name in ("gang", "priority", "predicates", "nodeorder", "binpack", "proportion", "drf"):
        assert name in message


def test_c_what_volcano_ships_is_accepted() -> None:
    """Volcano's own default file, and its other plugins, flags and arguments."""
    data = {
        "actions": "enqueue, allocate, backfill",
        "tiers": [
            {"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}]},
            {
                "plugins": [
                    {"name": "overcommit"},
                    {"name": "drf", "enablePreemptable": False},
                    {"name": "predicates"},
                    {"name": "proportion"},
                    {"name": "nodeorder", "enabledResourceNodeOrder": False},
                    {"name": "binpack"},
                    {"name": "sla"},
                    {"name": "pdb"},
                    {"name": "cdp"},
                ]
            },
        ],
    }
    assert set(simulate(m.node("n"), m.one_pod_job("j"), config=data).first_bound()) == {"j-w-0"}


def test_c_the_default_config_written_out_is_the_default() -> None:
    written = {
        "actions": "enqueue, allocate, backfill, preempt, reclaim, reserve",
        "tiers": [
            {"plugins": [{"name": name} for name in ("priority", "gang", "conformance")]},
            {"plugins": [{"name": name} for name in ("overcommit", "drf", "predicates", "proportion", "nodeorder")]},
        ],
    }
    assert parse(written) == parse(None) == parse({})
    stories = [
        m.node("n", 4),
        m.node("m", 4),
        m.job("j", m.role("a", 3, 2), m.role("b", 2)),
        m.job("k", m.role("w", 4)),
    ]
    lines = [simulate(*stories, config=one).timeline for one in (None, written)]
    assert msgspec.json.encode(lines[0]) == msgspec.json.encode(lines[1])


# ---- flags


def _two_priorities(which: dict[str, Any] | None) -> list[str]:
    first = m.one_pod_job("a-low", 2, at="1s", priorityClassName="low")
    second = m.one_pod_job("b-high", 2, at="2s", priorityClassName="high")
    answer = simulate(CLASSES, m.node("n", 2), m.one_pod_job("first", 2, run_time="10s"), first, second, config=which)
    return [name for name in answer.first_bound() if not name.startswith("first")]


def test_c_job_order_switched_off_goes_by_creation() -> None:
    assert _two_priorities(config("priority", "nodeorder")) == ["b-high-w-0"]
    assert _two_priorities(config({"name": "priority", "enableJobOrder": False})) == ["a-low-w-0"]
    assert _two_priorities(config({"name": "priority", "enabledJobOrder": False})) == ["a-low-w-0"]
    assert _two_priorities(config({"name": "priority", "enableJobOrder": True})) == ["b-high-w-0"]


def test_c_rules_hold_though_their_plugin_is_not_listed() -> None:
    """Leaving a plugin out is not switching it off: order by priority, predicates and shares are rules (G6, G8)."""
    assert _two_priorities(config("nodeorder")) == ["b-high-w-0"]
    taint = [{"key": "k", "effect": "NoSchedule"}]
    assert not simulate(m.node("n", taints=taint), m.pod("p"), config=config("gang")).first_bound()


def test_c_task_order_switched_off_goes_by_index() -> None:
    def order(*plugins: dict[str, Any]) -> set[str]:
        j = m.job("j", m.role("master", 5, 3, priority="high"), m.role("work", 3, 2, priority="low"))
        return set(simulate(CLASSES, m.node("n", 6), j, config=config(*plugins)).first_bound())

    minima = {"j-master-0", "j-master-1", "j-master-2", "j-work-0", "j-work-1"}
    assert order({"name": "priority"}) == minima | {"j-master-3"}
    assert order({"name": "priority", "enableTaskOrder": False}) == minima | {"j-work-2"}


def test_c_predicates_switched_off() -> None:
    taint = [{"key": "k", "effect": "NoSchedule"}]
    off = config({"name": "predicates", "enablePredicate": False})
    assert not simulate(m.node("n", taints=taint), m.pod("p"), config=config("predicates")).first_bound()
    assert set(simulate(m.node("n", taints=taint), m.pod("p"), config=off).first_bound()) == {"p"}
    assert not simulate(m.node("n", 4), m.pod("p", cpu=5), config=off).first_bound(), "room is no matter of taste (G5)"


def test_c_predicates_switched_off_includes_those_that_look_at_other_pods() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    members = [m.pod(f"p{index}", labels={"app": "x"}, affinity=apart) for index in range(2)]
    assert len(simulate(m.node("n"), members, config=config("predicates")).first_bound()) == 1
    assert (
        len(
            simulate(
                m.node("n"), members, config=config({"name": "predicates", "enablePredicate": False})
            ).first_bound()
        )
        == 2
    )


def test_c_queue_order_switched_off_goes_by_age() -> None:
    def taken(*plugins: dict[str, Any]) -> Counter[str]:
        a = [m.one_pod_job(f"a-{index}", queue="a") for index in range(6)]
        b = [m.one_pod_job(f"b-{index}", queue="b", at="1s") for index in range(6)]
        answer = simulate(m.node("n", 4, at="2s"), [m.queue("a"), m.queue("b")], a, b, config=config(*plugins))
        return Counter(name[0] for name in answer.first_bound())

    assert taken({"name": "proportion"}) == {"a": 2, "b": 2}
    assert taken({"name": "proportion", "enableQueueOrder": False}) == {"a": 4}


def test_c_unknown_flags_are_errors() -> None:
    found = problems(config({"name": "priority", "enableJobOrdering": False}))
    assert "tiers[0].plugins[0].enableJobOrdering" in found


# ---- scores


def four(**more: Any) -> list[Obj]:
    return [m.pod(f"p{index}", **more) for index in range(4)]


def test_c_least_requested_spreads_and_most_requested_packs() -> None:
    nodes = [m.node(f"n{index}", 4) for index in range(4)]
    assert sorted(packed(simulate(nodes, four(), config=config("nodeorder"))).values()) == [1, 1, 1, 1]
    most = {"leastrequested.weight": 0, "mostrequested.weight": 1, "balancedresource.weight": 0}
    answer = simulate(nodes, four(), config=config({"name": "nodeorder", "arguments": most}))
    assert list(packed(answer).values()) == [4]


def test_c_node_order_switched_off_takes_the_first_that_fits() -> None:
    nodes = [m.node(f"n{index}", 4) for index in range(4)]
    answer = simulate(nodes, four(), config=config({"name": "nodeorder", "enableNodeOrder": False}))
    assert packed(answer) == {"n0": 4}


def test_c_binpack_packs_onto_the_fewest_nodes() -> None:
    """Two nodes are half full; three pods of two fit into what is left of them, and the empty one stays empty."""
    nodes = [m.node("empty", 8), m.node("n1", 4), m.node("n2", 4)]
    pinned = [m.pod(f"o{index}", cpu=2, nodeSelector={"kubernetes.io/hostname": f"n{index}"}) for index in (1, 2)]
    late = [m.pod(f"p{index}", cpu=2, at="5s") for index in range(2)]
    answer = simulate(nodes, pinned, late, config=config({"name": "binpack", "arguments": {"binpack.weight": 10}}))
    assert packed(answer, "p") == {"n1": 1, "n2": 1}
    assert "empty" in packed(simulate(nodes, pinned, late, config=config("nodeorder")), "p")


def test_c_binpack_by_a_chosen_resource() -> None:
    """By cpu the node `busy` is fuller, by gpus `half` is."""
    gpu = "nvidia.com/gpu"
    nodes = [m.node("busy", 8, extra={gpu: "4"}), m.node("half", 8, extra={gpu: "4"})]
    here = {"kubernetes.io/hostname": "busy"}
    there = {"kubernetes.io/hostname": "half"}
    before = [m.pod("cpu", cpu=6, nodeSelector=here), m.pod("gpus", cpu=1, extra={gpu: "2"}, nodeSelector=there)]
    asks = m.pod("p", cpu=1, extra={gpu: "1"}, at="5s")

    def lands(**arguments: Any) -> str:
        answer = simulate(nodes, before, asks, config=config({"name": "binpack", "arguments": arguments}))
        return answer.nodes("p")["p"]

    assert lands(**{"binpack.memory": 0}) == "busy"
    by_gpu = {"binpack.cpu": 0, "binpack.memory": 0, "binpack.resources": gpu, f"binpack.resources.{gpu}": 5}
    assert lands(**by_gpu) == "half"


def test_c_balanced_evens_out_cpu_and_memory() -> None:
    """`even` would be left with as much cpu as memory, `odd` with memory only."""
    nodes = [m.node("odd", 4, "64Gi"), m.node("even", 4, "4Gi")]
    weights = {"leastrequested.weight": 0, "balancedresource.weight": 1}
    answer = simulate(
        nodes, m.pod("p", cpu=2, memory="2Gi"), config=config({"name": "nodeorder", "arguments": weights})
    )
    assert answer.nodes() == {"p": "even"}


def test_c_preferred_node_affinity_decides() -> None:
    nodes = [m.node("a", 8), m.node("b", 4, labels={"disk": "ssd"})]
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    preferred = [{"weight": 100, "preference": term}]
    wish = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    assert simulate(nodes, m.pod("p", affinity=wish)).nodes() == {"p": "b"}
    assert simulate(nodes, m.pod("p")).nodes() == {"p": "a"}
    indifferent = config({"name": "nodeorder", "arguments": {"nodeaffinity.weight": 0}})
    assert simulate(nodes, m.pod("p", affinity=wish), config=indifferent).nodes() == {"p": "a"}


def test_c_preferred_taints_are_avoided() -> None:
    nodes = [m.node("a", 8, taints=[{"key": "k", "effect": "PreferNoSchedule"}]), m.node("b", 4)]
    assert simulate(nodes, m.pod("p")).nodes() == {"p": "b"}


def test_c_preferred_pod_affinity_decides() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    wish = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    nodes = [m.node("a", 8), m.node("b", 8)]
    db = m.pod("db", cpu=2, labels={"app": "db"}, nodeSelector={"kubernetes.io/hostname": "b"})
    assert simulate(nodes, db, m.pod("p", affinity=wish, at="1s")).nodes()["p"] == "b"
    assert simulate(nodes, db, m.pod("p", at="1s")).nodes()["p"] == "a"


# ---- other keys


def test_c_the_overcommit_factor_decides_what_is_enqueued() -> None:
    def enqueued(factor: float) -> bool:
        overcommit = {"name": "overcommit", "arguments": {"overcommit-factor": factor}}
        answer = simulate(
            m.node("n", 10), m.one_pod_job("a", 10), m.one_pod_job("b", 4, at="1s"), config=config(overcommit)
        )
        return bool(answer.pods("b"))

    assert not enqueued(1.2)
    assert enqueued(1.4)


def test_c_admit_oversized_lets_in_what_no_cluster_holds_yet() -> None:
    big = m.job("big", m.role("w", 8))
    assert simulate(m.node("n", 4), big).pods() == []
    assert "the cluster has 4" in simulate(m.node("n", 4), big).pending("default/big")["message"]
    answer = simulate(m.node("n", 4), big, m.node("m", 4, at="60s"), config={"enqueue": {"admitOversized": True}})
    assert len(answer.lines("created")) >= 8
    assert set(answer.first_bound().values()) == {60.0}


def test_c_scheduler_names_are_a_list() -> None:
    mine = m.pod("p")
    mine["spec"]["schedulerName"] = "my-own"
    assert not simulate(m.node("n"), mine, m.pod("q")).first_bound("p")
    assert set(simulate(m.node("n"), mine, m.pod("q"), config={"schedulerNames": ["my-own"]}).first_bound()) == {"p"}


# ---- a third party's plugin: fifteen lines and an entry point


PLUGIN = '''
class FastDisks:
    """Nodes with many fast disks first; gangs with short names first."""

    def __init__(self, arguments):
        self.weight = int(arguments.get("weight", 1))

    def score(self, room):
        disks = room.after(room.column("example.com/disks"))
        nobody_has = room.free_part(room.column("example.com/unheard-of"))
        return (disks * 1000 - 5000) * self.weight + nobody_has

    def gang_order(self, gang):
        return (len(gang.spec.key.name),)
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `pip install` leaves behind."""
    (tmp_path / "fast_disks.py").write_text(PLUGIN)
    info = tmp_path / "fast_disks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fast-disks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[enbloc.plugins]\nfastdisks = fast_disks:FastDisks\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "fast_disks", raising=False)


@pytest.mark.usefixtures("installed")
def test_c_a_third_partys_plugin_is_found_by_its_entry_point() -> None:
    nodes = [m.node("large", 8, extra={"example.com/disks": "1"}), m.node("fast", 4, extra={"example.com/disks": "90"})]
    assert simulate(nodes, m.pod("p")).nodes() == {"p": "large"}, "installed, and not listed: it does nothing"
    answer = simulate(nodes, m.pod("p"), config=config("nodeorder", {"name": "fastdisks", "arguments": {"weight": 3}}))
    assert answer.nodes() == {"p": "fast"}
    off = config("nodeorder", {"name": "fastdisks", "enableNodeOrder": False})
    assert simulate(nodes, m.pod("p"), config=off).nodes() == {"p": "large"}


@pytest.mark.usefixtures("installed")
def test_c_a_third_partys_plugin_orders_gangs() -> None:
    waiting = [m.one_pod_job("long-name", 4), m.one_pod_job("short", 4)]
    assert list(simulate(m.node("n", 4), waiting).first_bound()) == ["long-name-w-0"]
    assert list(simulate(m.node("n", 4), waiting, config=config("fastdisks")).first_bound()) == ["short-w-0"]


def test_c_a_plugin_that_is_not_installed_is_unknown() -> None:
    assert "fastdisks" in problems(config("fastdisks"))["tiers[0].plugins[0].name"]


def test_c_enable_preemptable_false_on_priority_switches_preemption_by_priority_off() -> None:
    objects = [CLASSES, m.node("n", 4), m.pod("a", 4, priority="low"), m.pod("b", 4, priority="high", at="10s")]
    assert simulate(*objects, until="20s").lines("evicted")
    off = config({"name": "priority", "enablePreemptable": False})
    answer = simulate(*objects, config=off, until="20s")
    assert not answer.lines("evicted")
    assert answer.at("b") is None
