"""Rule C: every fault of the config file is reported with its field path; nothing that can be written crashes."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from enbloc import config
from enbloc.config import ConfigError, vocabulary
from support.config_texts import parsed, problems, tiers

names = st.sampled_from([*vocabulary.ACTIONS, *vocabulary.PLUGINS])

keys = st.sampled_from([*vocabulary.NODEORDER_WEIGHTS, "binpack.weight", "binpack.resources", "mode", "enableJobOrder"])


def test_n5_an_unknown_preset_is_a_problem():
    with pytest.raises(config.ConfigError, match=r"compat\[0\].*volcan.*did you mean volcano"):
        parsed("compat: [volcan]")


def test_c_unknown_action_lists_the_known_ones():
    message = problems('actions: "enqueue, alocate"')["actions"]
    assert 'unknown action "alocate"; did you mean allocate?' in message
    for known in vocabulary.ACTIONS:
        assert known in message


def test_c_unknown_plugin_lists_the_known_ones():
    message = problems("tiers: [{plugins: [{name: gang}, {name: nodeoder}]}]")["tiers[0].plugins[1].name"]
    assert 'unknown plugin "nodeoder"; did you mean nodeorder?' in message
    for known in vocabulary.PLUGINS:
        assert known in message


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
            'must be best-effort or easy or conservative, not "hard"',
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


# Whatever a YAML file may hold, in places where it may stand.
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates() | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=3),
    max_leaves=8,
)

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
