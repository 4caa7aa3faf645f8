"""Prints a config as the YAML file that it comes from, complete, with a comment on every key.

The output reads back as the same config. Comments are for its editors.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from enbloc.config import vocabulary
from enbloc.config.compat import DEFAULT_SCHEDULER, PRESETS
from enbloc.config.model import Action, Config, Plugin, Tenancy, Tier
from enbloc.config.owner_kinds import GroupByOwner, as_data
from enbloc.config.volcano import MAX_WEIGHT
from enbloc.units import format_duration

_ARGUMENT_NOTES = {
    "starvingJobTimeThreshold": "seconds a gang waits before it counts as starving",
    "reservedNodePercent": "at most this share of all nodes holds reservations at once, 1 to 100",
    "mode": "best-effort: pods that request nothing; easy, conservative: others that delay not the first, or none",
    "fair.by": "user: of a namespace, then of its users (enbloc.dev/user); queue: of queues",
    "by": "priority: of gangs of lower priority; order: of all gangs that come later, which are then packed anew",
    "overcommit-factor": "gangs are enqueued up to allocatable times this, less what is used",
    "sla-waiting-time": "the deadline of a gang without an annotation of its own: so long after its creation",
    "halfLife": "usage that is this old counts half",
    "shares": "of namespaces, and of NAMESPACE/USER in one, where they are not 1; queues have their weight",
    "binpack.weight": "of the whole score",
    "binpack.cpu": "of cpu in it",
    "binpack.memory": "of memory in it",
    "binpack.resources": "what counts beside cpu and memory",
    **{key: note for key, (_, _, note) in vocabulary.NODEORDER_WEIGHTS.items()},
    **dict.fromkeys(vocabulary.NODEORDER_IGNORED | vocabulary.IGNORED_ACTION_ARGUMENTS, "accepted, has no effect"),
}


def render(config: Config) -> str:
    """The effective config as YAML."""
    return "\n".join(_lines(config)) + "\n"


def _lines(config: Config) -> Iterator[str]:
    yield "# Pods whose spec.schedulerName is one of these are ours. With the default list and no preset, the names"
    yield f"# of all presets and {DEFAULT_SCHEDULER} are too wherever no other scheduler runs: in sim, up and lint."
    yield f"schedulerNames: {_flow(list(config.scheduler_names or vocabulary.SCHEDULER_NAMES))}"
    yield ""
    yield "# Presets for manifests of other projects: their scheduler names are ours, and their defaults hold where"
    yield f"# this file says nothing. Of {', '.join(PRESETS)}."
    yield f"compat: {_flow(list(config.compat))}"
    yield ""
    yield "# A constraint that this version does not honour (docs/compatibility.md). hold: its gang waits and says so;"
    yield "# warn: the gang is scheduled without it, with a Warning event."
    yield f"unsupported: {config.unsupported}"
    yield ""
    yield "# What a scheduling cycle does, in this order."
    yield "actions:"
    for action in config.actions:
        yield from _action(action)
    yield ""
    yield "# Plugins, in tiers as Volcano has them. enable… flags switch a plugin off at one point; weights are whole"
    yield f"# numbers from 0 (off) to {MAX_WEIGHT}."
    yield "tiers:" if config.tiers else "tiers: []"
    for tier in config.tiers:
        yield from _tier(tier)
    yield from _sections(config)


def _sections(config: Config) -> Iterator[str]:
    yield ""
    yield "# Defaults and validation of new objects."
    yield "admission:"
    yield "  # strict: a job's minimum is the sum of its roles' minima; relaxed: any up to its replicas, as in Volcano"
    yield f"  minAvailable: {config.admission.min_available}"
    yield ""
    yield "# Which gangs are enqueued."
    yield "enqueue:"
    yield "  # also gangs larger than the whole cluster, for clusters that an autoscaler grows"
    yield f"  admitOversized: {_flow(config.enqueue.admit_oversized)}"
    yield "  # how long an enqueued gang without pods counts against others"
    yield f"  expectPodsWithin: {format_duration(config.enqueue.expect_pods_within_ns)}"
    yield ""
    yield "# A partially bound gang is completed within this time, or evicted to start over."
    yield f"partialGangTimeout: {format_duration(config.partial_gang_timeout_ns)}"
    yield ""
    yield "# Gangs as Koordinator's users declare them."
    yield "koordinator:"
    yield "  # how long a gang group waits for its missing members, unless it says"
    yield f"  defaultWaitingTime: {format_duration(config.koordinator.default_waiting_ns)}"
    yield ""
    yield "# Gangs as kube-arbitrator's users declare them."
    yield "arbitrator:"
    yield "  # pods of a controller that Kubernetes does not know wait for a SchedulingSpec"
    yield f"  requireSchedulingSpec: {_flow(config.arbitrator.require_scheduling_spec)}"
    yield ""
    yield "# Jobs whose roles depend on each other."
    yield "dependsOn:"
    yield "  # how long room is claimed for later waves, where the whole job is one gang"
    yield f"  gangDeadline: {format_duration(config.depends_on.gang_deadline_ns)}"
    yield ""
    yield "# Queues that set no dequeueStrategy."
    yield "queues:"
    yield "  # traverse: a gang that does not fit is passed by others; fifo: it blocks those behind it"
    yield f"  dequeueStrategy: {'fifo' if config.queues.fifo else 'traverse'}"
    yield ""
    yield "# What /metrics shows besides."
    yield "metrics:"
    yield "  # volcano: queues have metrics under Volcano's names too, for boards that query them"
    yield f"  compat: {'volcano' if config.volcano_metrics else 'none'}"
    yield from _group_by_owner(config.group_by_owner)
    yield ""
    yield "# Trees of nodes, each with the labels of its levels from the top down; HyperNodes and Topologies add more."
    topologies = [{"name": one.name, "levels": list(one.levels)} for one in config.topologies]
    yield f"topologies: {_flow(topologies)}"
    yield from _tenancy(config.tenancy)


def _group_by_owner(grouping: GroupByOwner) -> Iterator[str]:
    yield ""
    yield "# Pods of a JobSet, a RayCluster, an Indexed Job are a gang without a PodGroup (docs/dialects.md)."
    yield "groupByOwner:"
    yield "  # null: in sim and up, where no other scheduler runs; not on a cluster"
    yield f"  enabled: {_flow(grouping.enabled)}"
    yield "  # more kinds, before those that are known: kind, minimum, roles and where they are"
    yield "  kinds:" if grouping.kinds else "  kinds: []"
    for kind in grouping.kinds:
        yield f"  - {_flow(as_data(kind))}"


def _tenancy(tenancy: Tenancy) -> Iterator[str]:
    yield ""
    yield "# shared: as in Volcano. isolated: a gang's priority is at most its pods', preemptable and cooldown-time"
    yield "# count up to the queue's share, and no message names an object of another namespace."
    yield f"tenancy: {'isolated' if tenancy.isolated else 'shared'}"
    yield ""
    yield "# Namespaces, besides kube-system, whose Jobs and PodGroups may have a system- priority class."
    yield f"systemPriorityNamespaces: {_flow(list(tenancy.system_namespaces))}"
    yield ""
    yield "# A longer cooldown-time counts as this; null: without bound."
    longest_ns = tenancy.longest_cooldown_ns
    yield f"longestCooldownTime: {'null' if longest_ns is None else format_duration(longest_ns)}"


def _action(action: Action) -> Iterator[str]:
    yield f"  # {vocabulary.ACTIONS[action.name]}"
    yield f"  - name: {action.name}"
    yield from _arguments(action.name, action.arguments, "    ")


def _tier(tier: Tier) -> Iterator[str]:
    yield "  - plugins:" if tier.plugins else "  - plugins: []"
    for plugin in tier.plugins:
        yield from _plugin(plugin)


def _plugin(plugin: Plugin) -> Iterator[str]:
    note = vocabulary.PLUGINS.get(plugin.name)
    yield f"      # {note.text if note else 'from another package'}"
    yield f"      - name: {_flow(plugin.name)}"
    for point, enabled in plugin.points.items():
        yield f"        {vocabulary.flag_of(point)}: {_flow(enabled)}  # whether it takes part at this point"
    yield from _arguments(plugin.name, plugin.arguments, "        ")


def _arguments(of: str, arguments: dict[str, Any], indent: str) -> Iterator[str]:
    if arguments:
        yield f"{indent}arguments:"
    for key, value in arguments.items():
        note = _ARGUMENT_NOTES.get(f"{of}.{key}") or _ARGUMENT_NOTES.get(key)
        if note is None:
            note = "its weight" if key.startswith("binpack.resources.") else "passed on as it is"
        yield f"{indent}  {_flow(key)}: {_flow(value)}  # {note}"


def _flow(value: object) -> str:
    """Any plain value on one line."""
    text = _dump(value)
    # Text over several lines would be folded, and break out of its place: quoted, its line ends are escaped.
    return text if "\n" not in text else _dump(value, style='"')


def _dump(value: object, style: str | None = None) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, default_style=style, width=float("inf"), sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
