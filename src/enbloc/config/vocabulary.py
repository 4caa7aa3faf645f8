"""The names that a config file may use: actions, plugins, extension points, and the meaning of each.

Every name that Volcano ships is known, so that its files work. A name has an effect, or is accepted because the engine
does that in any case, or because it has no counterpart; the notes say which, and are the comments of the printed
config. This module knows names only; values are read by `reading`.
"""

from typing import Final

import msgspec

ENTRY_POINTS: Final = "enbloc.plugins"
"""The entry point group in which other packages offer plugins."""

SCHEDULER_NAMES: Final = ("enbloc", "kar-scheduler")

CONFIG_MAP: Final = "enbloc-config"
CONFIG_FILE: Final = "enbloc.yaml"
"""Where `enbloc install` puts the config: this file of this ConfigMap."""

ACTIONS: Final = {
    "enqueue": "enqueue gangs whose minimum could be met",
    "allocate": "place gangs on free resources, all or nothing",
    "backfill": "place BestEffort pods, and in modes easy and conservative what delays no other",
    "preempt": "evict inside a queue, by priority",
    "reclaim": "evict from queues above their share",
    "reserve": "reserve nodes for starving gangs",
}
"""Every action, in the order in which they run by default."""

ACTION_ALIASES: Final = {"gangpreempt": "preempt", "gangreclaim": "reclaim"}

IGNORED_ACTION_ARGUMENTS: Final = frozenset({"predicateErrorCacheEnable", "enablePredicateErrorCache"})
"""Volcano's tuning that any action may have; without effect, since predicate errors are always cached."""


NO_EFFECT: Final = "accepted, has no effect"


class PluginNote(msgspec.Struct, frozen=True, gc=False):
    """What naming a plugin does.

    `built_in`: the engine does it whether the plugin is listed or not; a flag may still switch a point off.
    """

    text: str
    built_in: bool = True


PLUGINS: Final = {
    # Rules: on whether listed or not; only a flag switches them off.
    "priority": PluginNote("higher priority first, among gangs and inside one"),
    "predicates": PluginNote("which nodes a pod may use, as Kubernetes defines it"),
    "proportion": PluginNote("shares among queues"),
    "capacity": PluginNote("shares among queues, by what each deserves"),
    # Choices: left out of the tiers, they are off.
    "nodeorder": PluginNote("scores nodes; each weight 0 switches its score off", built_in=False),
    "binpack": PluginNote("scores full nodes higher, to keep others free", built_in=False),
    "fair": PluginNote("by usage over time against a share, among gangs of equal priority", built_in=False),
    "sjf": PluginNote("shortest expected run time first, among gangs of equal priority", built_in=False),
    "srtf": PluginNote("shortest remaining run time first, among gangs of equal priority", built_in=False),
    "srsf": PluginNote("least remaining service (run time x GPUs, or cpus) first", built_in=False),
    # Built in: accepted, with arguments where they mean something.
    "gang": PluginNote("built in: a gang starts all or nothing"),
    "conformance": PluginNote("built in: system-critical pods are never evicted"),
    "overcommit": PluginNote("built in: how far beyond the free resources gangs are enqueued"),
    "sla": PluginNote("earliest deadline first; a gang whose deadline has passed is enqueued", built_in=False),
    "pdb": PluginNote("built in: PodDisruptionBudgets are respected"),
    "cdp": PluginNote("built in: a cooldown keeps a new pod from being evicted"),
    "drf": PluginNote("built in: the queue of the lowest share is served next"),
    "resourcequota": PluginNote("built in: quotas apply when pods are created"),
    # Accepted so that a file from Volcano works; without effect.
    "crossquota": PluginNote(NO_EFFECT),
    "deviceshare": PluginNote(NO_EFFECT),
    "extender": PluginNote(NO_EFFECT),
    "network-topology-aware": PluginNote(NO_EFFECT),
    "nodegroup": PluginNote(NO_EFFECT),
    "numa-aware": PluginNote(NO_EFFECT),
    "numaaware": PluginNote(NO_EFFECT),
    "rescheduling": PluginNote(NO_EFFECT),
    "reservation": PluginNote(f"{NO_EFFECT}: see the action reserve"),
    "resource-strategy-fit": PluginNote(NO_EFFECT),
    "task-topology": PluginNote(NO_EFFECT),
    "tdm": PluginNote(NO_EFFECT),
    "usage": PluginNote(NO_EFFECT),
}

DEFAULT_TIERS: Final = (
    ("priority", "gang", "conformance"),
    ("overcommit", "drf", "predicates", "proportion", "nodeorder"),
)

POINTS: Final = frozenset(
    {
        "allocatable",
        "bestNode",
        "clusterOrder",
        "hierarchy",
        "hyperNodeGradient",
        "hyperNodeOrder",
        "jobEnqueued",
        "jobOrder",
        "jobPipelined",
        "jobReady",
        "jobStarving",
        "namespaceOrder",
        "nodeOrder",
        "overused",
        "preemptable",
        "preemptablePod",
        "preemptive",
        "predicate",
        "queueOrder",
        "reclaimable",
        "reservedNodes",
        "resourceNodeOrder",
        "subJobOrder",
        "subJobPipelined",
        "subJobReady",
        "targetJob",
        "taskOrder",
        "victim",
        "victimQueueOrder",
    }
)
"""Extension points that a flag of a plugin can switch off: `nodeOrder` by `enableNodeOrder: false`."""


def flag_of(point: str) -> str:
    """The usual spelling of the flag for a point."""
    return f"enable{point[0].upper()}{point[1:]}"


def point_of(flag: str) -> str | None:
    """The point that a flag is for; Volcano spells some flags enable…, some enabled…, one Enabled…."""
    for prefix in ("enabled", "Enabled", "enable", "Enable"):
        rest = flag.removeprefix(prefix)
        if rest != flag and rest[:1].isupper():
            point = rest[0].lower() + rest[1:]
            return point if point in POINTS else None
    return None


NODEORDER_WEIGHTS: Final = {
    "leastrequested.weight": ("least", 1, "prefers empty nodes"),
    "mostrequested.weight": ("most", 0, "prefers full nodes"),
    "balancedresource.weight": ("balanced", 1, "prefers nodes whose resources are used evenly"),
    "nodeaffinity.weight": ("node_affinity", 2, "preferred node affinity"),
    "podaffinity.weight": ("pod_affinity", 2, "preferred pod affinity and anti-affinity"),
    "tainttoleration.weight": ("taint_toleration", 3, "avoids nodes with taints that only prefer"),
    "podtopologyspread.weight": ("spread", 2, "topology spread that may be broken"),
}
"""Argument of `nodeorder` -> field of `Scoring`, its default, what it does."""

NODEORDER_IGNORED: Final = frozenset({"imagelocality.weight", "selectorspread.weight", "volumebinding.weight"})
