"""Rule C: the config file is read as Volcano's users write it, and printed so that it reads back."""

import importlib.metadata
from typing import Any

import pytest
import yaml

from enbloc import config
from enbloc.config import Config, vocabulary
from enbloc.config.compat import PEER_SCHEDULER_NAMES
from enbloc.config.model import Binpack, Enqueue, Reserve, Scoring
from support.config_texts import parsed, problems, tiers

SECOND = 10**9


def action_names(parsed: Config) -> list[str]:
    return [action.name for action in parsed.actions]


# Defaults


def test_c_an_empty_document_is_all_defaults():
    default = config.parse(None)
    assert default == config.parse({})
    assert action_names(default) == ["enqueue", "allocate", "backfill", "preempt", "reclaim", "reserve"]
    assert [[plugin.name for plugin in tier.plugins] for tier in default.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
    ]
    assert default.scoring == Scoring(
        least=1, most=0, balanced=1, node_affinity=2, pod_affinity=2, taint_toleration=3, spread=2
    )
    assert default.reserve == Reserve(starving_after_ns=172_800 * SECOND, node_percent=50)
    assert default.backfill.mode == "best-effort"
    assert default.enqueue == Enqueue(admit_oversized=False, overcommit_milli=1200)
    assert default.admission.min_available == "strict"
    assert default.partial_gang_timeout_ns == 60 * SECOND
    assert default.koordinator.default_waiting_ns == 600 * SECOND
    assert default.arbitrator.require_scheduling_spec is False
    assert default.depends_on.gang_deadline_ns == 600 * SECOND
    assert default.sla_waiting_ns is None
    assert default.enqueue.expect_pods_within_ns == 60 * SECOND
    assert default.tenancy == config.Tenancy(isolated=False, system_namespaces=(), longest_cooldown_ns=None)


def test_c_null_means_the_default():
    text = "".join(f"{key}:\n" for key in ("schedulerNames", "actions", "tiers", "admission", "partialGangTimeout"))
    assert parsed(text) == config.parse(None)
    assert parsed("admission: {minAvailable: }") == config.parse(None)


# G1: whose pods are ours


@pytest.mark.parametrize(
    "text, alone, expected",
    [
        ("", False, {"enbloc", "kar-scheduler"}),
        ("", True, {"enbloc", "kar-scheduler", *PEER_SCHEDULER_NAMES}),
        ("schedulerNames: [mine]", False, {"mine"}),
        ("schedulerNames: [mine]", True, {"mine"}),
        # Written out, the default is still the default.
        ("schedulerNames: [enbloc, kar-scheduler]", True, {"enbloc", "kar-scheduler", *PEER_SCHEDULER_NAMES}),
        # With a preset, a simulation and a cluster take the same names.
        ("compat: [volcano]", True, {"enbloc", "kar-scheduler", "volcano"}),
        ("compat: [volcano]", False, {"enbloc", "kar-scheduler", "volcano"}),
        ("compat: koordinator,kai\nschedulerNames: [mine]", True, {"mine", "koord-scheduler", "kai-scheduler"}),
    ],
)
def test_g1_scheduler_names(text: str, alone: bool, expected: set[str]):
    assert config.scheduler_names(parsed(text), alone) == expected


def test_g1_where_no_other_scheduler_runs_all_names_of_presets_are_ours():
    assert {
        "volcano",
        "koord-scheduler",
        "scheduler-plugins-scheduler",
        "kai-scheduler",
        "yunikorn",
        "default-scheduler",
    } == set(PEER_SCHEDULER_NAMES)


# N5: presets


def test_n5_volcano_relaxes_minima_and_runs_its_default_actions():
    found = parsed("compat: [volcano]")
    assert found.admission.min_available == "relaxed"
    assert action_names(found) == ["enqueue", "allocate", "backfill"]


def test_n5_what_the_file_says_wins():
    found = parsed("compat: [volcano]\nadmission: {minAvailable: strict}\nactions: allocate")
    assert found.admission.min_available == "strict"
    assert action_names(found) == ["allocate"]


def test_n5_other_presets_change_names_alone():
    for preset in ("koordinator", "scheduler-plugins", "kai", "yunikorn"):
        found = parsed(f"compat: [{preset}]")
        assert found.admission.min_available == "strict"
        assert action_names(found) == action_names(config.parse(None))


# Actions


@pytest.mark.parametrize(
    "text, expected",
    [
        ('actions: "enqueue, allocate, backfill"', ["enqueue", "allocate", "backfill"]),
        ('actions: "allocate,backfill,"', ["allocate", "backfill"]),
        ("actions: [enqueue, allocate]", ["enqueue", "allocate"]),
        ("actions: [{name: allocate}, reserve, {name: backfill, arguments: {}}]", ["allocate", "reserve", "backfill"]),
        ('actions: "allocate, gangpreempt, gangreclaim"', ["allocate", "preempt", "reclaim"]),
        # In Volcano these are two; here they are one, and it runs where it is named first.
        ('actions: "gangpreempt, allocate, preempt"', ["preempt", "allocate"]),
    ],
)
def test_c_actions_as_a_string_or_a_list(text: str, expected: list[str]):
    assert action_names(parsed(text)) == expected


def test_c_arguments_of_reserve_as_the_seed_writes_them():
    with_arguments = parsed("""
        actions:
        - name: allocate
        - name: reserve
          arguments: {starvingJobTimeThreshold: 60, reservedNodePercent: "25"}
    """)
    assert with_arguments.reserve == Reserve(60 * SECOND, 25)


def test_c_arguments_of_actions_in_configurations():
    written = parsed("""
        actions: "enqueue, allocate, backfill, reserve"
        configurations:
        - name: reserve
          arguments: {starvingJobTimeThreshold: 5}
        - name: backfill
          arguments: {mode: easy}
        - name: enqueue
          arguments: {overcommit-factor: 1.5}
        - name: allocate
          arguments: {predicateErrorCacheEnable: true}
    """)
    assert written.reserve == Reserve(5 * SECOND, 50)
    assert written.backfill.mode == "easy"
    assert written.enqueue.overcommit_milli == 1500
    assert written.actions[1].arguments == {"predicateErrorCacheEnable": True}


def test_c_arguments_of_an_action_that_does_not_run_are_checked_and_dropped():
    assert parsed("{actions: allocate, configurations: [{name: reserve, arguments: {reservedNodePercent: 9}}]}") == (
        parsed("actions: allocate")
    )
    assert 'configurations[0].arguments["reservedNodePercent"]' in problems(
        "{actions: allocate, configurations: [{name: reserve, arguments: {reservedNodePercent: 0}}]}"
    )


# Tiers


VOLCANO_DEFAULT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""


def test_c_volcanos_own_default_file_is_read():
    volcano = parsed(VOLCANO_DEFAULT)
    assert not volcano.enabled("gang", "preemptable")
    assert volcano.enabled("gang", "jobReady")
    assert volcano.scoring.binpack == Binpack(1, {"cpu": 1, "memory": 1})


@pytest.mark.parametrize("name", sorted(vocabulary.PLUGINS))
def test_c_every_plugin_that_volcano_ships_is_accepted(name: str):
    listed = tiers({"name": name}).plugin(name)
    assert listed is not None
    assert listed.name == name


@pytest.mark.parametrize("point", sorted(vocabulary.POINTS))
@pytest.mark.parametrize("prefix", ["enable", "enabled", "Enabled"])
def test_c_every_flag_switches_its_point_off(point: str, prefix: str):
    flag = prefix + point[0].upper() + point[1:]
    switched = tiers({"name": "priority", flag: False}, {"name": "gang", flag: True})
    assert not switched.enabled("priority", point)
    assert switched.enabled("gang", point)


def test_c_a_plugin_that_is_not_listed_is_off_unless_built_in():
    none = config.parse({"tiers": []})
    assert not none.enabled("nodeorder", "nodeOrder")
    assert none.enabled("priority", "jobOrder")
    assert not none.enabled("stranger", "jobOrder")
    assert none.enabled("gang", "jobReady")
    assert none.plugin("priority") is None
    assert none.arguments("priority") == {}
    with pytest.raises(ValueError, match="no such extension point"):
        none.enabled("gang", "joborder")


def test_c_a_third_partys_plugin_is_known_by_its_entry_point(monkeypatch: pytest.MonkeyPatch):
    def entry_points(*, group: str) -> list[importlib.metadata.EntryPoint]:
        assert group == "enbloc.plugins"
        return [importlib.metadata.EntryPoint("colour", "somewhere:Colour", group)]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    written = tiers({"name": "colour", "enableNodeOrder": False, "arguments": {"likes": ["red", {"much": 1.5}]}})
    assert written.arguments("colour") == {"likes": ["red", {"much": 1.5}]}
    assert not written.enabled("colour", "nodeOrder")
    assert written.enabled("colour", "predicate")
    assert config.parse(yaml.safe_load(config.render(written))) == written
    assert "colour" in problems("tiers: [{plugins: [{name: color}]}]")["tiers[0].plugins[0].name"]


# Scoring


@pytest.mark.parametrize(
    "plugin, expected",
    [
        ({"name": "gang"}, Scoring()),
        ({"name": "nodeorder", "enableNodeOrder": False}, Scoring()),
        (
            {
                "name": "nodeorder",
                "arguments": {
                    "leastrequested.weight": 0,
                    "mostrequested.weight": "5",
                    "balancedresource.weight": 2.0,
                    "nodeaffinity.weight": 3,
                    "podaffinity.weight": 4,
                    "tainttoleration.weight": 6,
                    "podtopologyspread.weight": 7,
                    "imagelocality.weight": 8,
                },
            },
            Scoring(most=5, balanced=2, node_affinity=3, pod_affinity=4, taint_toleration=6, spread=7),
        ),
        ({"name": "binpack"}, Scoring(binpack=Binpack(1, {"cpu": 1, "memory": 1}))),
        ({"name": "binpack", "enableNodeOrder": False}, Scoring()),
        (
            {
                "name": "binpack",
                "arguments": {
                    "binpack.weight": 10,
                    "binpack.cpu": 5,
                    "binpack.memory": 0,
                    "binpack.resources": "nvidia.com/gpu, example.com/foo",
                    "binpack.resources.nvidia.com/gpu": 2,
                    "binpack.resources.example.com/unlisted": 3,
                },
            },
            Scoring(
                binpack=Binpack(10, {"cpu": 5, "example.com/foo": 1, "example.com/unlisted": 3, "nvidia.com/gpu": 2})
            ),
        ),
        ({"name": "binpack", "arguments": {"binpack.cpu": 0, "binpack.memory": 0}}, Scoring()),
        (
            {"name": "binpack", "arguments": {"binpack.resources": ["a", "cpu"], "binpack.resources.cpu": 9}},
            Scoring(binpack=Binpack(1, {"a": 1, "cpu": 1, "memory": 1})),
        ),
    ],
)
def test_c_scoring_is_computed_from_the_tiers(plugin: dict[str, Any], expected: Scoring):
    assert tiers(plugin).scoring == expected


@pytest.mark.parametrize(
    "text, milli",
    [
        ("tiers: []", 1200),
        ("tiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: 1.35}}]}]", 1350),
        ("tiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: '2'}}]}]", 2000),
        ("actions: [{name: enqueue, arguments: {overcommit-factor: 1}}]", 1000),
        # The plugin's word counts before the action's.
        (
            "{actions: [{name: enqueue, arguments: {overcommit-factor: 3}}],"
            " tiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: 1.001}}]}]}",
            1001,
        ),
    ],
)
def test_m6_overcommit_factor_is_exact(text: str, milli: int):
    assert parsed(text).enqueue.overcommit_milli == milli


def test_r1_sla_waiting_time():
    assert tiers({"name": "sla"}).sla_waiting_ns is None
    assert tiers({"name": "sla", "arguments": {"sla-waiting-time": "1h2m"}}).sla_waiting_ns == 3720 * SECOND


# Our own keys


def test_c_our_own_sections():
    written = parsed("""
        admission: {minAvailable: relaxed}
        enqueue: {admitOversized: true, expectPodsWithin: 5s}
        partialGangTimeout: 90s
        tenancy: isolated
        systemPriorityNamespaces: [monitoring, storage]
        longestCooldownTime: 1h
        koordinator: {defaultWaitingTime: 1.5s}
        arbitrator: {requireSchedulingSpec: true}
        dependsOn: {gangDeadline: 1h}
        metrics: {type: prometheus}
    """)
    assert written.admission.min_available == "relaxed"
    assert written.enqueue.admit_oversized
    assert written.enqueue.expect_pods_within_ns == 5 * SECOND
    assert written.tenancy == config.Tenancy(True, ("monitoring", "storage"), 3600 * SECOND)
    assert written.partial_gang_timeout_ns == 90 * SECOND
    assert written.koordinator.default_waiting_ns == 1_500_000_000
    assert written.arbitrator.require_scheduling_spec
    assert written.depends_on.gang_deadline_ns == 3600 * SECOND


# Printing


def comment_of_each_key(text: str) -> list[str]:
    """Keys with no comment on their line or on the line above them."""
    lines = text.splitlines()
    keys = [n for n, line in enumerate(lines) if ":" in line.split("#")[0]]
    structure = ("plugins:", "arguments:")
    return [
        lines[n]
        for n in keys
        if "#" not in lines[n]
        and not lines[n - 1].strip().startswith("#")
        and not lines[n].strip(" -").startswith(structure)
    ]


FULL = """
schedulerNames: [mine, 'yes', "tab\\there"]
actions: [{name: reserve, arguments: {starvingJobTimeThreshold: 1}}, {name: allocate, arguments: {a b: {c: [1, null]}}}]
tiers:
- plugins:
  - name: gang
    enablePreemptable: false
    enabledVictim: true
- plugins: []
- plugins:
  - name: binpack
    arguments: {binpack.resources: "nvidia.com/gpu", binpack.weight: "7"}
  - {name: nodeorder, arguments: {imagelocality.weight: 4}}
  - {name: sla, arguments: {sla-waiting-time: 90m}}
  - {name: overcommit, arguments: {overcommit-factor: 1.337}}
  - {name: usage, arguments: {text: "multi\\nline: # no comment", number: 1.5e300, thresholds: {cpu: 80}}}
admission: {minAvailable: relaxed}
enqueue: {admitOversized: true}
partialGangTimeout: 1500ms
koordinator: {defaultWaitingTime: 1ns}
arbitrator: {requireSchedulingSpec: true}
dependsOn: {gangDeadline: 26h3m0.5s}
tenancy: isolated
systemPriorityNamespaces: [monitoring]
longestCooldownTime: 90m
"""


@pytest.mark.parametrize(
    "text",
    ["", "tiers: []", "tiers: [{}]", "actions: enqueue", VOLCANO_DEFAULT, FULL],
    ids=["empty", "no-tiers", "empty-tier", "one-action", "volcano", "full"],
)
def test_c_what_is_printed_reads_back_the_same(text: str):
    written = parsed(text)
    printed = config.render(written)
    assert parsed(printed) == written
    assert config.render(parsed(printed)) == printed
    assert comment_of_each_key(printed) == []


@pytest.mark.parametrize("factor", [0.5, "0", 0.999])
def test_c_an_overcommit_factor_below_1_counts_as_the_default_with_a_warning(factor: object) -> None:
    plugin = {"name": "overcommit", "arguments": {"overcommit-factor": factor}}
    found = config.parse({"tiers": [{"plugins": [plugin]}]})
    assert found.enqueue.overcommit_milli == 1200
    [(path, message)] = found.warnings
    assert path == 'tiers[0].plugins[0].arguments["overcommit-factor"]'
    assert "1.2" in message


def test_c_a_plugin_without_effect_is_named_in_a_warning() -> None:
    found = config.parse({"tiers": [{"plugins": [{"name": "gang"}, {"name": "tdm"}]}]})
    assert found.warnings == (("tiers[0].plugins[1].name", "plugin tdm is accepted, has no effect"),)
    assert config.parse(None).warnings == ()
