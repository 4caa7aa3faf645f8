"""Rule C: the config file; what Volcano's users write works, and every fault is reported with its field path."""

import importlib.metadata
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from enbloc import config
from enbloc.config import Binpack, Config, ConfigError, Scoring, vocabulary
from enbloc.config.compat import PEER_SCHEDULER_NAMES

SECOND = 10**9


def parsed(text: str) -> Config:
    return config.parse(yaml.safe_load(text))


def problems(text: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parsed(text)
    return dict(caught.value.problems)


def tiers(*plugins: dict[str, Any]) -> Config:
    return config.parse({"tiers": [{"plugins": list(plugins)}]})


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
    assert default.reserve == config.Reserve(starving_after_ns=172_800 * SECOND, node_percent=50)
    assert default.backfill.mode == "best-effort"
    assert default.enqueue == config.Enqueue(admit_oversized=False, overcommit_milli=1200)
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


def test_n5_an_unknown_preset_is_a_problem():
    with pytest.raises(config.ConfigError, match=r"compat\[0\].*volcan.*did you mean volcano"):
        parsed("compat: [volcan]")


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
    assert with_arguments.reserve == config.Reserve(60 * SECOND, 25)


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
    assert written.reserve == config.Reserve(5 * SECOND, 50)
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


def test_c_unknown_action_lists_the_known_ones():
    message = problems('actions: "enqueue, alocate"')["actions"]
    assert 'unknown action "alocate"; did you mean allocate?' in message
    for known in vocabulary.ACTIONS:
        assert known in message


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


def test_c_unknown_plugin_lists_the_known_ones():
    message = problems("tiers: [{plugins: [{name: gang}, {name: nodeoder}]}]")["tiers[0].plugins[1].name"]
    assert 'unknown plugin "nodeoder"; did you mean nodeorder?' in message
    for known in vocabulary.PLUGINS:
        assert known in message


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


# Faults


BINPACK = "tiers: [{plugins: [{name: gang}, {name: binpack, arguments: {%s}}]}]"
ARGUMENT = 'tiers[0].plugins[1].arguments["%s"]'


@pytest.mark.parametrize(
    "text, path, message",
    [
        ("[]", ".", "must be a mapping, not a list"),
        ("3", ".", "must be a mapping, not 3"),
        ("{1: 2}", ".", "keys must be strings, not 1"),
        ("kind: ConfigMap", ".", "give the YAML inside its data"),
        ("action: allocate", "action", "did you mean actions?"),
        ("partialgangtimeout: 1s", "partialgangtimeout", "did you mean partialGangTimeout?"),
        ('"a\\nb": 1', "a\\nb", "unknown key"),
        ("schedulerNames: enbloc", "schedulerNames", "must be a list"),
        ("schedulerNames: []", "schedulerNames", "at least one"),
        ("schedulerNames: [a, '']", "schedulerNames[1]", "must be the name of a scheduler"),
        ("schedulerNames: [a, a]", "schedulerNames[1]", "a second time"),
        ("actions: 7", "actions", "must be a list"),
        ("actions: ''", "actions", "names no action"),
        ("actions: []", "actions", "names no action"),
        ("actions: [7]", "actions[0]", "must be a mapping, not 7"),
        ("actions: [null]", "actions[0]", "must be a mapping, not null"),
        ("configurations: [x]", "configurations[0]", "must be a mapping"),
        ("tiers: [null]", "tiers[0]", "must be a mapping"),
        ("actions: [{}]", "actions[0].name", "must be the name of an action"),
        ("actions: [{name: allocate, argument: {}}]", "actions[0].argument", "did you mean arguments?"),
        ("actions: allocate, allocate", "actions", "a second time"),
        ("actions: [{name: reserve, arguments: 1}]", "actions[0].arguments", "must be a mapping"),
        (
            "actions: [{name: reserve, arguments: {starvingJobTimeThreshold: -1}}]",
            'actions[0].arguments["starvingJobTimeThreshold"]',
            "must be a whole number from 0",
        ),
        (
            "actions: [{name: reserve, arguments: {reservedNodePercent: 101}}]",
            'actions[0].arguments["reservedNodePercent"]',
            "must be a whole number from 1 to 100, not 101",
        ),
        (
            "actions: [{name: reserve, arguments: {reservedNodesPercent: 1}}]",
            'actions[0].arguments["reservedNodesPercent"]',
            "did you mean reservedNodePercent?",
        ),
        (
            "actions: [{name: backfill, arguments: {mode: hard}}]",
            'actions[0].arguments["mode"]',
            'must be best-effort or easy, not "hard"',
        ),
        (
            "{actions: [{name: backfill, arguments: {mode: easy}}],"
            " configurations: [{name: backfill, arguments: {mode: easy}}]}",
            'configurations[0].arguments["mode"]',
            'is given at actions[0].arguments["mode"] too',
        ),
        ("configurations: [{name: shuffle}]", "configurations[0].name", "unknown action"),
        ("tiers: {}", "tiers", "must be a list, not a mapping"),
        ("tiers: [[]]", "tiers[0]", "must be a mapping"),
        ("tiers: [{plugin: []}]", "tiers[0].plugin", "did you mean plugins?"),
        ("tiers: [{plugins: [gang]}]", "tiers[0].plugins[0]", 'must be a mapping, not "gang"'),
        ("tiers: [{plugins: [null]}]", "tiers[0].plugins[0]", "must be a mapping"),
        ("tiers: [{plugins: [{}]}]", "tiers[0].plugins[0].name", "must be the name of a plugin"),
        ("tiers: [{plugins: [{name: [a]}]}]", "tiers[0].plugins[0].name", "must be the name of a plugin"),
        ("tiers: [{plugins: [{name: gang}]}, {plugins: [{name: gang}]}]", "tiers[1].plugins[0].name", "a second time"),
        (
            "tiers: [{plugins: [{name: gang, enableJobOder: true}]}]",
            "tiers[0].plugins[0].enableJobOder",
            "did you mean enableJobOrder?",
        ),
        (
            "tiers: [{plugins: [{name: gang, enableJobOrder: 'no'}]}]",
            "tiers[0].plugins[0].enableJobOrder",
            'must be true or false, not "no"',
        ),
        (
            "tiers: [{plugins: [{name: gang, enableVictim: true, enabledVictim: false}]}]",
            "tiers[0].plugins[0].enabledVictim",
            "contradicts",
        ),
        (BINPACK % "binpack.weight: -1", ARGUMENT % "binpack.weight", "from 0 to 10000, not -1"),
        (BINPACK % "binpack.weight: .nan", ARGUMENT % "binpack.weight", "whole number"),
        (BINPACK % "binpack.weight: .inf", ARGUMENT % "binpack.weight", "whole number"),
        (BINPACK % "binpack.weight: 1.5", ARGUMENT % "binpack.weight", "not 1.5"),
        (BINPACK % "binpack.weight: true", ARGUMENT % "binpack.weight", "not true"),
        (BINPACK % "binpack.weight: heavy", ARGUMENT % "binpack.weight", 'not "heavy"'),
        (BINPACK % f"binpack.weight: {'9' * 4000}", ARGUMENT % "binpack.weight", "too many digits"),
        (BINPACK % "binpack.wieght: 1", ARGUMENT % "binpack.wieght", "did you mean binpack.weight?"),
        (BINPACK % "binpack.resources: 5", ARGUMENT % "binpack.resources", "must be a list"),
        (BINPACK % "binpack.resources: [5]", ARGUMENT % "binpack.resources", "names of resources, not 5"),
        (BINPACK % "binpack.resources.: 1", ARGUMENT % "binpack.resources.", "unknown argument"),
        (BINPACK % "binpack.resources.x: y", ARGUMENT % "binpack.resources.x", "whole number"),
        (
            "tiers: [{plugins: [{name: nodeorder, arguments: {leastrequsted.weight: 1}}]}]",
            'tiers[0].plugins[0].arguments["leastrequsted.weight"]',
            "did you mean leastrequested.weight?",
        ),
        *(
            (
                f"tiers: [{{plugins: [{{name: overcommit, arguments: {{overcommit-factor: {factor}}}}}]}}]",
                'tiers[0].plugins[0].arguments["overcommit-factor"]',
                "must be a number from 0 to 1000",
            )
            for factor in ("-1", ".nan", ".inf", "true", "x", "1.0001", "9" * 400, "[1]", "1e-9")
        ),
        (
            "tiers: [{plugins: [{name: sla, arguments: {sla-waiting-time: soon}}]}]",
            'tiers[0].plugins[0].arguments["sla-waiting-time"]',
            "is not a duration",
        ),
        (
            "tiers: [{plugins: [{name: usage, arguments: {thresholds: {cpu: .nan}}}]}]",
            'tiers[0].plugins[0].arguments["thresholds"].cpu',
            "finite number",
        ),
        (
            "tiers: [{plugins: [{name: usage, arguments: {a: &a [*a]}}]}]",
            'tiers[0].plugins[0].arguments["a"]' + "[0]" * 17,
            "too deep",
        ),
        ("admission: {minAvailable: lax}", "admission.minAvailable", 'must be strict or relaxed, not "lax"'),
        ("admission: {minAvailable: [strict]}", "admission.minAvailable", "not a list"),
        ("admission: {minavailable: strict}", "admission.minavailable", "did you mean minAvailable?"),
        ("admission: strict", "admission", "must be a mapping"),
        ("enqueue: {admitOversized: 1}", "enqueue.admitOversized", "must be true or false, not 1"),
        ("enqueue: {expectPodsWithin: 0s}", "enqueue.expectPodsWithin", "must be a duration above zero"),
        ("tenancy: strict", "tenancy", 'must be shared or isolated, not "strict"'),
        ("systemPriorityNamespaces: [a, a]", "systemPriorityNamespaces[1]", 'names "a" a second time'),
        ("systemPriorityNamespaces: a", "systemPriorityNamespaces", "must be a list"),
        ("longestCooldownTime: 5", "longestCooldownTime", "must be a duration above zero"),
        ("partialGangTimeout: 60", "partialGangTimeout", "must be a duration above zero"),
        ("partialGangTimeout: 0s", "partialGangTimeout", "must be a duration above zero"),
        ("partialGangTimeout: -5s", "partialGangTimeout", "must be a duration above zero"),
        ("partialGangTimeout: 5 parsecs", "partialGangTimeout", "is not a duration"),
        ("koordinator: {defaultWaitingTime: 2020-01-01}", "koordinator.defaultWaitingTime", "duration"),
        ("arbitrator: {requireSchedulingSpec: null, x: 1}", "arbitrator.x", "unknown key"),
        ("dependsOn: {gangDeadline: ''}", "dependsOn.gangDeadline", "duration"),
    ],
)
def test_c_a_fault_names_its_field(text: str, path: str, message: str):
    found = problems(text)
    assert list(found) == [path]
    assert message in found[path]
    assert "\n" not in path + found[path]


def test_c_every_fault_is_reported_at_once():
    found = problems("""
        actons: allocate
        actions: [allocate, fly]
        tiers:
        - plugins:
          - {name: gangs, enableJobOrder: 3}
          - {name: nodeorder, arguments: {podaffinity.weight: a, nodeaffinity.weight: b}}
        admission: {minAvailable: x}
        partialGangTimeout: x
    """)
    assert set(found) == {
        "actons",
        "actions[1]",
        "tiers[0].plugins[0].name",
        "tiers[0].plugins[0].enableJobOrder",
        'tiers[0].plugins[1].arguments["podaffinity.weight"]',
        'tiers[0].plugins[1].arguments["nodeaffinity.weight"]',
        "admission.minAvailable",
        "partialGangTimeout",
    }


def test_c_yaml_that_multiplies_itself_comes_to_an_end():
    bomb: list[Any] = ["x"] * 10
    for _ in range(12):
        bomb = [bomb] * 10
    with pytest.raises(ConfigError) as caught:
        tiers({"name": "usage", "arguments": {"bomb": bomb, "another": bomb}})
    assert [message for _, message in caught.value.problems] == ["is nested too deep or too large"]


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


# Whatever a YAML file may hold, in places where it may stand.
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates() | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from([*vocabulary.ACTIONS, *vocabulary.PLUGINS])
keys = st.sampled_from([*vocabulary.NODEORDER_WEIGHTS, "binpack.weight", "binpack.resources", "mode", "enableJobOrder"])
entries = st.fixed_dictionaries(
    {"name": names}, optional={"arguments": st.dictionaries(keys, values, max_size=3), "enableVictim": values}
)
documents = values | st.fixed_dictionaries(
    {},
    optional={
        "schedulerNames": values,
        "actions": values | st.lists(names | entries | values, max_size=3),
        "configurations": values | st.lists(entries | values, max_size=2),
        "tiers": values | st.lists(st.fixed_dictionaries({"plugins": st.lists(entries | values, max_size=3)})),
        "admission": values | st.dictionaries(st.just("minAvailable"), values),
        "partialGangTimeout": values,
        "dependsOn": values | st.dictionaries(st.just("gangDeadline"), values),
    },
)


@given(documents)
def test_c_nothing_that_can_be_written_crashes(data: Any):
    try:
        written = config.parse(data)
    except ConfigError as error:
        found = error.problems
    else:
        assert config.parse(yaml.safe_load(config.render(written))) == written
        return
    assert found
    assert all(path and message and "\n" not in path + message for path, message in found)


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
