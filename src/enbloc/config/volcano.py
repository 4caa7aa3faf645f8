"""Actions and tiers: the part of the file that is Volcano's, in Volcano's notation.

Known arguments are checked and defaulted; the engine's settings (`scoring`, `reserve`, …) are then computed from them.
Other arguments are passed to their plugin.
"""

from collections.abc import Iterable
from typing import Any, Literal, cast

from enbloc.config import vocabulary
from enbloc.config.model import Action, Backfill, Binpack, Enqueue, Fair, Plugin, Preempt, Reserve, Scoring, Tier
from enbloc.config.values import ValueReader, child, label, nearest, shown
from enbloc.units import SECOND, format_duration, parse_duration

MAX_WEIGHT = 10_000
"""Keeps the sum of all weighted scores far inside 64 bits."""

MAX_STARVING_S = 100 * 365 * 24 * 3600

_FACTOR = "overcommit-factor"
_FACTOR_MILLI = (0, 1_000_000)
_LEAST_FACTOR_MILLI = 1_000
_SLA = "sla-waiting-time"
_HALF_LIFE = "halfLife"
_LEAST_HALF_LIFE_NS = SECOND
_SHARES = "shares"

Given = dict[str, tuple[Any, str]]
"""Arguments as written: key -> value and field path."""


# Actions


def read_actions(reader: ValueReader, listed: object, configurations: object) -> tuple[Action, ...]:
    """The actions in their order, with arguments from the list itself and from Volcano's `configurations`."""
    given: dict[str, Given] = {}
    for name, arguments, path in _listed_actions(reader, listed):
        _gather(reader, given.setdefault(name, {}), arguments, path)
    order = tuple(given)
    for n, item in enumerate(reader.sequence(configurations, "configurations")):
        path = f"configurations[{n}]"
        entry = reader.entry(item, path, ("name", "arguments"))
        if entry is None:
            continue
        configured = _action_name(reader, entry.get("name"), f"{path}.name")
        if configured is not None:
            _gather(reader, given.setdefault(configured, {}), entry.get("arguments"), f"{path}.arguments")
    # Arguments of an action that does not run are checked all the same, then dropped.
    read = {name: _action_arguments(reader, name, arguments) for name, arguments in given.items()}
    return tuple(Action(name, read[name]) for name in order)


def _listed_actions(reader: ValueReader, value: object) -> Iterable[tuple[str, object, str]]:
    """Name, arguments and the arguments' path of each listed action."""
    if value is None:
        return [(name, None, "actions") for name in vocabulary.ACTIONS]
    items: list[Any]
    if isinstance(value, str):
        # A comma at the end is how many such files are written.
        items = [name.strip() for name in value.split(",") if name.strip()]
    else:
        items = reader.sequence(value, "actions")
    if not items and isinstance(value, str | list | tuple):
        reader.problem("actions", f"names no action; known: {', '.join(vocabulary.ACTIONS)}")
    result: list[tuple[str, object, str]] = []
    written: set[str] = set()
    for n, item in enumerate(items):
        path = "actions" if isinstance(value, str) else f"actions[{n}]"
        entry = {"name": item} if isinstance(item, str) else reader.entry(item, path, ("name", "arguments"))
        if entry is None:
            continue
        name_path = path if isinstance(item, str) else f"{path}.name"
        name = _action_name(reader, entry.get("name"), name_path)
        if name is None:
            continue
        # An alias beside its action is no fault: Volcano has both as actions of their own.
        if entry["name"] in written:
            reader.problem(name_path, f"names {shown(entry['name'])} a second time")
        written.add(entry["name"])
        result.append((name, entry.get("arguments"), f"{path}.arguments"))
    return result


def _action_name(reader: ValueReader, value: object, path: str) -> str | None:
    known = ", ".join(vocabulary.ACTIONS)
    if not isinstance(value, str):
        reader.problem(path, f"must be the name of an action, not {shown(value)}; known: {known}")
        return None
    name = vocabulary.ACTION_ALIASES.get(value, value)
    if name not in vocabulary.ACTIONS:
        hint = nearest(name, vocabulary.ACTIONS)
        reader.problem(path, f"unknown action {shown(value)}{hint}; known: {known}")
        return None
    return name


def _gather(reader: ValueReader, into: Given, arguments: object, path: str) -> None:
    for key, value in reader.mapping(arguments, path).items():
        key_path = f'{path}["{label(key)}"]'
        if key in into:
            reader.problem(key_path, f"is given at {into[key][1]} too")
        else:
            into[key] = (value, key_path)


def _action_arguments(reader: ValueReader, name: str, given: Given) -> dict[str, Any]:
    match name:
        case "enqueue":
            arguments = {}
            if _FACTOR in given:
                arguments[_FACTOR] = _factor(reader, *given[_FACTOR], default=Enqueue().overcommit_milli)
            return arguments | _ignored(reader, given, (_FACTOR,), vocabulary.IGNORED_ACTION_ARGUMENTS)
        case "backfill":
            mode = reader.choice(*_get(given, "mode"), ("best-effort", "easy", "conservative"), Backfill().mode)
            return {"mode": mode} | _ignored(reader, given, ("mode",), vocabulary.IGNORED_ACTION_ARGUMENTS)
        case "preempt":
            by = reader.choice(*_get(given, "by"), ("priority", "order"), Preempt().by)
            return ({"by": by} if "by" in given else {}) | _plain(
                reader, {key: value for key, value in given.items() if key != "by"}
            )
        case "reserve":
            after, percent = "starvingJobTimeThreshold", "reservedNodePercent"
            default = Reserve()
            default_s = default.starving_after_ns // SECOND
            arguments = {
                after: reader.integer(*_get(given, after), default_s, 0, MAX_STARVING_S),
                percent: reader.integer(*_get(given, percent), default.node_percent, 1, 100),
            }
            return arguments | _ignored(reader, given, (after, percent), vocabulary.IGNORED_ACTION_ARGUMENTS)
    return _plain(reader, given)


def _get(given: Given, key: str) -> tuple[Any, str]:
    return given.get(key, (None, key))


def _plain(reader: ValueReader, given: Given) -> dict[str, Any]:
    return {key: reader.plain(value, path) for key, (value, path) in given.items()}


def _ignored(
    reader: ValueReader, given: Given, read: Iterable[str], ignored: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """The arguments besides the known ones: some are accepted without effect, the rest are faults."""
    known = [*read, *ignored]
    for key, (_, path) in given.items():
        if key not in known:
            reader.problem(path, f"unknown argument{nearest(key, known)}")
    return _plain(reader, {key: given[key] for key in sorted(ignored) if key in given})


def _factor(reader: ValueReader, value: object, path: str, default: int) -> float:
    """As in Volcano, a factor below 1 counts as the default: it would close the cluster to its own capacity."""
    milli = reader.thousandths(value, path, default, *_FACTOR_MILLI)
    if milli < _LEAST_FACTOR_MILLI:
        fallback = Enqueue().overcommit_milli
        reader.warning(path, f"{shown(value)} is below 1: the default {fallback / 1000:g} counts")
        milli = fallback
    return milli / 1000


# Tiers


def read_tiers(reader: ValueReader, value: object, actions: tuple[Action, ...]) -> tuple[Tier, ...]:
    if value is None:
        value = [{"plugins": [{"name": name} for name in tier]} for tier in vocabulary.DEFAULT_TIERS]
    seen: dict[str, str] = {}
    tiers = []
    for n, item in enumerate(reader.sequence(value, "tiers")):
        tier = reader.entry(item, f"tiers[{n}]", ("plugins",)) or {}
        path = f"tiers[{n}].plugins"
        plugins = [
            _plugin(reader, entry, f"{path}[{m}]", seen, actions)
            for m, entry in enumerate(reader.sequence(tier.get("plugins"), path))
        ]
        tiers.append(Tier(tuple(plugin for plugin in plugins if plugin is not None)))
    return tuple(tiers)


def _plugin(
    reader: ValueReader, value: object, path: str, seen: dict[str, str], actions: tuple[Action, ...]
) -> Plugin | None:
    entry = reader.entry(value, path)
    if entry is None:
        return None
    name = _plugin_name(reader, entry.get("name"), f"{path}.name")
    points = _points(reader, entry, path)
    given: Given = {}
    _gather(reader, given, entry.get("arguments"), f"{path}.arguments")
    if name is None:
        return None
    if name in seen:
        reader.problem(f"{path}.name", f"lists {name} a second time, after {seen[name]}")
    seen[name] = path
    return Plugin(name, points, _plugin_arguments(reader, name, given, actions))


def _plugin_name(reader: ValueReader, value: object, path: str) -> str | None:
    if isinstance(value, str) and value in vocabulary.PLUGINS:
        return value
    # Asked only for names that are not our own: looking through the installed packages takes a while.
    from importlib import metadata

    others = sorted({point.name for point in metadata.entry_points(group=vocabulary.ENTRY_POINTS)})
    if isinstance(value, str) and value in others:
        return value
    known = [*vocabulary.PLUGINS, *others]
    if isinstance(value, str):
        reader.problem(path, f"unknown plugin {shown(value)}{nearest(value, known)}; known: {', '.join(known)}")
    else:
        reader.problem(path, f"must be the name of a plugin, not {shown(value)}; known: {', '.join(known)}")
    return None


def _points(reader: ValueReader, entry: dict[str, Any], path: str) -> dict[str, bool]:
    """The enable… flags by extension point."""
    points: dict[str, bool] = {}
    for flag, value in entry.items():
        if flag in ("name", "arguments"):
            continue
        flag_path = child(path, flag)
        point = vocabulary.point_of(flag)
        if point is None:
            known = ["name", "arguments", *map(vocabulary.flag_of, vocabulary.POINTS)]
            reader.problem(flag_path, f"unknown flag{nearest(flag, known)}")
            continue
        enabled = reader.boolean(value, flag_path, default=True)
        if points.setdefault(point, enabled) != enabled:
            reader.problem(flag_path, "contradicts another spelling of the same flag")
    return points


def _plugin_arguments(reader: ValueReader, name: str, given: Given, actions: tuple[Action, ...]) -> dict[str, Any]:
    match name:
        case "nodeorder":
            weights = {
                key: reader.integer(*_get(given, key), default, 0, MAX_WEIGHT)
                for key, (_, default, _) in vocabulary.NODEORDER_WEIGHTS.items()
            }
            return weights | _ignored(reader, given, weights, vocabulary.NODEORDER_IGNORED)
        case "binpack":
            return _binpack_arguments(reader, given)
        case "overcommit":
            factor = _factor(reader, *_get(given, _FACTOR), default=overcommit_milli(actions, ()))
            return {_FACTOR: factor} | _ignored(reader, given, (_FACTOR,))
        case "fair":
            return _fair_arguments(reader, given)
        case "sla":
            _ignored(reader, given, (_SLA,))
            # Kept as written: without the argument there is no limit.
            nanos = reader.duration(*_get(given, _SLA), default=0)
            return {_SLA: given[_SLA][0]} if nanos else {}
    return _plain(reader, given)


def _fair_arguments(reader: ValueReader, given: Given) -> dict[str, Any]:
    default = Fair()
    half_life_ns = reader.duration(*_get(given, _HALF_LIFE), default.half_life_ns)
    if half_life_ns < _LEAST_HALF_LIFE_NS and _HALF_LIFE in given:
        reader.problem(given[_HALF_LIFE][1], f"must be at least {format_duration(_LEAST_HALF_LIFE_NS)}")
    listed, path = _get(given, _SHARES)
    shares: dict[str, int] = {}
    for name, share in reader.mapping(listed, path).items():
        shares[label(name)] = reader.integer(share, f'{path}["{label(name)}"]', 1, 1, MAX_WEIGHT)
    arguments = {"by": reader.choice(*_get(given, "by"), ("user", "queue"), default.by)}
    _ignored(reader, given, ("by", _HALF_LIFE, _SHARES))
    return arguments | {_HALF_LIFE: format_duration(half_life_ns), _SHARES: shares}


_RESOURCES = "binpack.resources"


def _binpack_arguments(reader: ValueReader, given: Given) -> dict[str, Any]:
    """`binpack.resources` lists resources beside cpu and memory; `binpack.resources.NAME` weighs one."""
    arguments: dict[str, Any] = {
        key: reader.integer(*_get(given, key), 1, 0, MAX_WEIGHT)
        for key in ("binpack.weight", "binpack.cpu", "binpack.memory")
    }
    listed, path = _get(given, _RESOURCES)
    names = dict.fromkeys(_resource_names(reader, listed, path))
    # A weight makes its resource count, listed or not.
    names |= dict.fromkeys(
        key.removeprefix(_RESOURCES + ".") for key in given if key.startswith(_RESOURCES + ".") and key[-1] != "."
    )
    if names:
        arguments[_RESOURCES] = ", ".join(names)
    for name in names:
        key = f"{_RESOURCES}.{name}"
        arguments[key] = reader.integer(*_get(given, key), 1, 0, MAX_WEIGHT)
    _ignored(reader, given, [*arguments, _RESOURCES])
    return arguments


def _resource_names(reader: ValueReader, value: object, path: str) -> list[str]:
    items = value.split(",") if isinstance(value, str) else reader.sequence(value, path)
    names = []
    for item in items:
        if isinstance(item, str) and "," not in item:
            names += [item.strip()] if item.strip() else []
        else:
            reader.problem(path, f"must list names of resources, not {shown(item)}")
    return names


# The engine's settings


def reserve(actions: tuple[Action, ...]) -> Reserve:
    arguments = _arguments(actions, "reserve")
    if not arguments:
        return Reserve()
    return Reserve(
        starving_after_ns=arguments["starvingJobTimeThreshold"] * SECOND,
        node_percent=arguments["reservedNodePercent"],
    )


def preempt(actions: tuple[Action, ...]) -> Preempt:
    arguments = _arguments(actions, "preempt")
    return Preempt(by=cast(Literal["priority", "order"], arguments.get("by", Preempt().by)))


def backfill(actions: tuple[Action, ...]) -> Backfill:
    mode = _arguments(actions, "backfill").get("mode", Backfill().mode)
    return Backfill(mode=cast(Literal["best-effort", "easy", "conservative"], mode))


def overcommit_milli(actions: tuple[Action, ...], tiers: tuple[Tier, ...]) -> int:
    """From the plugin `overcommit`, or the action `enqueue` as older files have it, or the default."""
    factor = _arguments(_plugins(tiers), "overcommit").get(_FACTOR) or _arguments(actions, "enqueue").get(_FACTOR)
    return round(factor * 1000) if factor else Enqueue().overcommit_milli


def fair(tiers: tuple[Tier, ...]) -> Fair:
    arguments = _arguments(_plugins(tiers), "fair")
    if not arguments:
        return Fair()
    by = cast(Literal["user", "queue"], arguments["by"])
    return Fair(by, parse_duration(arguments[_HALF_LIFE]), arguments[_SHARES])


def sla_waiting_ns(tiers: tuple[Tier, ...]) -> int | None:
    written = _arguments(_plugins(tiers), "sla").get(_SLA)
    return parse_duration(written) if written else None


def scoring(tiers: tuple[Tier, ...]) -> Scoring:
    """The weights of plugins that are listed and whose flag for scoring is not off."""
    active = [plugin for plugin in _plugins(tiers) if plugin.points.get("nodeOrder", True)]
    arguments = _arguments(active, "nodeorder")
    weights = {field: arguments.get(key, 0) for key, (field, _, _) in vocabulary.NODEORDER_WEIGHTS.items()}
    return Scoring(binpack=_binpack(_arguments(active, "binpack")), **weights)


def _binpack(arguments: dict[str, Any]) -> Binpack:
    if not arguments:
        return Binpack()
    prefix = _RESOURCES + "."
    extra = {key.removeprefix(prefix): weight for key, weight in arguments.items() if key.startswith(prefix)}
    # cpu and memory have keys of their own, which win.
    weights = extra | {"cpu": arguments["binpack.cpu"], "memory": arguments["binpack.memory"]}
    counted = {name: weights[name] for name in sorted(weights) if weights[name]}
    return Binpack(arguments["binpack.weight"], counted) if counted else Binpack()


def _plugins(tiers: tuple[Tier, ...]) -> list[Plugin]:
    return [plugin for tier in tiers for plugin in tier.plugins]


def _arguments(listed: Iterable[Action] | Iterable[Plugin], name: str) -> dict[str, Any]:
    return next((entry.arguments for entry in listed if entry.name == name), {})
