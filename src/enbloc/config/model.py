"""`Config` and its parts.

Values are checked and in the units that the code computes with: nanoseconds, thousandths, whole weights. The
defaults of single values are defined here; `reading.parse(None)` is the config with all of them.
"""

from typing import Any, Final, Literal

import msgspec

from enbloc.config.compat import PEER_SCHEDULER_NAMES, PRESETS, preset_names
from enbloc.config.owner_kinds import GroupByOwner
from enbloc.config.vocabulary import PLUGINS, POINTS, SCHEDULER_NAMES
from enbloc.units import SECOND


class Action(msgspec.Struct, frozen=True):
    """One step of a cycle. Known arguments have their defaults."""

    name: str
    arguments: dict[str, Any] = {}


class Plugin(msgspec.Struct, frozen=True):
    """A plugin as the tiers list it: the points its flags name (`nodeOrder` -> False), and its arguments."""

    name: str
    points: dict[str, bool] = {}
    arguments: dict[str, Any] = {}


class Tier(msgspec.Struct, frozen=True):
    plugins: tuple[Plugin, ...] = ()


class Binpack(msgspec.Struct, frozen=True):
    """Weight 0 means off; a resource that is not named does not count."""

    weight: int = 0
    resources: dict[str, int] = {}


class Scoring(msgspec.Struct, frozen=True):
    """The weight of each node score, 0 for off, as the plugins `nodeorder` and `binpack` set them."""

    least: int = 0
    most: int = 0
    balanced: int = 0
    node_affinity: int = 0
    pod_affinity: int = 0
    taint_toleration: int = 0
    spread: int = 0
    binpack: Binpack = Binpack()


class Reserve(msgspec.Struct, frozen=True):
    """R1 and R6."""

    starving_after_ns: int = 172_800 * SECOND
    node_percent: int = 50


class Backfill(msgspec.Struct, frozen=True):
    mode: Literal["best-effort", "easy", "conservative"] = "best-effort"


class Preempt(msgspec.Struct, frozen=True):
    """P1, or by the order of gangs: see `engine.features.evict.preempt_by_order`."""

    by: Literal["priority", "order"] = "priority"


class Fair(msgspec.Struct, frozen=True):
    """G12, where the plugin `fair` is in the tiers."""

    by: Literal["user", "queue"] = "user"
    half_life_ns: int = 7 * 86_400 * SECOND
    shares: dict[str, int] = {}
    """Of namespaces, and of NAMESPACE/USER inside one; 1 where nothing is said. Queues have their weight."""


class Enqueue(msgspec.Struct, frozen=True):
    """M6. The overcommit factor in thousandths, so that room is computed in integers."""

    admit_oversized: bool = False
    overcommit_milli: int = 1_200
    expect_pods_within_ns: int = 60 * SECOND
    """How long an enqueued gang without pods counts against others (S4)."""


class Admission(msgspec.Struct, frozen=True):
    """M1."""

    min_available: Literal["strict", "relaxed"] = "strict"


class Koordinator(msgspec.Struct, frozen=True):
    """K3."""

    default_waiting_ns: int = 600 * SECOND


class Arbitrator(msgspec.Struct, frozen=True):
    """A1."""

    require_scheduling_spec: bool = False


class Queues(msgspec.Struct, frozen=True):
    """For queues that set no `dequeueStrategy`."""

    fifo: bool = False


class DependsOn(msgspec.Struct, frozen=True):
    """D5: how long room is claimed for later waves."""

    gang_deadline_ns: int = 600 * SECOND


class Tenancy(msgspec.Struct, frozen=True):
    """What tenants may take from each other (S3, S6, S7)."""

    isolated: bool = False
    """A gang's priority is at most its pods', immunity ends at the queue's share, messages name no object of another
    namespace."""
    system_namespaces: tuple[str, ...] = ()
    """Namespaces whose gangs may have a `system-*` priority class, besides kube-system (S3)."""
    longest_cooldown_ns: int | None = None
    """A longer `cooldown-time` counts as this; `None`: without bound (S6)."""


class Topology(msgspec.Struct, frozen=True):
    """T5: a tree of nodes by their labels, from the top down."""

    name: str
    levels: tuple[str, ...]


PARTIAL_GANG_TIMEOUT_NS: Final = 60 * SECOND
"""G11."""


class Config(msgspec.Struct, frozen=True):
    """The whole file. `scheduler_names` is None for the default: use the function of that name."""

    actions: tuple[Action, ...]
    tiers: tuple[Tier, ...]
    scoring: Scoring
    scheduler_names: tuple[str, ...] | None = None
    unsupported: Literal["hold", "warn"] = "hold"
    """What a constraint that is not honoured does to its gang (N1)."""
    compat: tuple[str, ...] = ()
    """Names of presets (N5)."""
    reserve: Reserve = Reserve()
    backfill: Backfill = Backfill()
    preempt: Preempt = Preempt()
    fair: Fair = Fair()
    enqueue: Enqueue = Enqueue()
    admission: Admission = Admission()
    koordinator: Koordinator = Koordinator()
    arbitrator: Arbitrator = Arbitrator()
    depends_on: DependsOn = DependsOn()
    tenancy: Tenancy = Tenancy()
    queues: Queues = Queues()
    volcano_metrics: bool = False
    """Whether queues have metrics under Volcano's names too."""
    group_by_owner: GroupByOwner = GroupByOwner()
    topologies: tuple[Topology, ...] = ()
    partial_gang_timeout_ns: int = PARTIAL_GANG_TIMEOUT_NS
    sla_waiting_ns: int | None = None
    plugins_in_code: tuple[object, ...] = ()
    """Plugins that a caller of the Python API passes; no file can name them. A function is a `gang_order`."""
    warnings: tuple[tuple[str, str], ...] = ()
    """Field path and message of values that count as something else, and of plugins without effect."""

    def plugin(self, name: str) -> Plugin | None:
        """The plugin as the tiers list it, None if they do not."""
        return next((plugin for tier in self.tiers for plugin in tier.plugins if plugin.name == name), None)

    def arguments(self, plugin: str) -> dict[str, Any]:
        """The arguments of a plugin, known ones with their defaults; empty if it is not listed."""
        listed = self.plugin(plugin)
        return dict(listed.arguments) if listed else {}

    def enabled(self, plugin: str, point: str) -> bool:
        """Whether a plugin takes part at an extension point (`nodeOrder`, `jobOrder`, …).

        A listed plugin does, unless its flag says no. One that is not listed does only if it is built in.
        """
        if point not in POINTS:
            raise ValueError(f"no such extension point: {point}")
        listed = self.plugin(plugin)
        if listed is not None:
            return listed.points.get(point, True)
        return plugin in PLUGINS and PLUGINS[plugin].built_in

    def runs(self, action: str) -> bool:
        return any(listed.name == action for listed in self.actions)


def default_scheduler_name(config: Config) -> str:
    """The `schedulerName` of jobs that name none: the first that is ours, unless a preset names another."""
    by_preset = [PRESETS[name].of_jobs for name in config.compat] if config.scheduler_names is None else []
    return next(filter(None, by_preset), None) or (config.scheduler_names or SCHEDULER_NAMES)[0]


def where_alone(config: Config) -> Config:
    """The config where no other scheduler runs (`sim`, `up`): pods are grouped by owner unless it says no."""
    if config.group_by_owner.enabled is not None:
        return config
    return msgspec.structs.replace(config, group_by_owner=msgspec.structs.replace(config.group_by_owner, enabled=True))


def scheduler_names(config: Config, alone: bool) -> frozenset[str]:
    """The scheduler names that are ours (G1). `alone`: no other scheduler runs here, so without names or presets in the
    config the names of all presets are ours, and Kubernetes' default."""
    own = config.scheduler_names or SCHEDULER_NAMES
    if config.scheduler_names is not None or config.compat or not alone:
        return frozenset(own + preset_names(config.compat))
    return frozenset(own + PEER_SCHEDULER_NAMES)
