"""G12: what accounts used over time. All that was ever used is remembered piece by piece (from when to when, and which
part of the cluster), and summed up anew in every cycle."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from oracle import adapter, minima, queues

World = dict[str, Any]
Gang = dict[str, Any]
Account = tuple[str, str, str]
"""A queue, its UID (a queue that is deleted takes its usage along), and a name; the queue's own account has none."""
Rates = dict[Account, Fraction]
Usage = tuple[float, Fraction, float]
"""In seconds of the whole cluster, against the share; of accounts that are nearly equal the same, then the rate until
now, then what was used exactly."""

NEGLIGIBLE = 1e-6
"""Decision 0125: less than a microsecond of the cluster is nothing."""
SAME = 1e-12
NOTHING = (0.0, Fraction(0), 0.0)
LONGEST_NAME = 63
USER = "enbloc.dev/user"


def g12_user(gang: Gang) -> str:
    """Its object says so; of a gang that has no object, its oldest pod."""
    if gang["object"] is not None:
        return user_on(gang["object"])
    oldest = min(gang["tasks"], key=lambda task: (task["created"], task["name"]), default=None)
    return user_on(oldest["pod"]) if oldest else ""


def user_on(obj: dict[str, Any]) -> str:
    metadata = obj["metadata"]
    text = (metadata.get("annotations") or {}).get(USER) or (metadata.get("labels") or {}).get(USER) or ""
    return text if len(text) <= LONGEST_NAME and text.isprintable() else ""


def g12_accounts(world: World, gang: Gang) -> list[Account]:
    """What a gang is charged to: its namespace and its user, in its queue; or its queue and those above it."""
    if world["settings"]["fair"]["by"] == "queue":
        return [of_queue(world, place) for place in queues.path_up(world, gang["queue"]) if place != queues.ROOT]
    queue, uid, _ = of_queue(world, gang["queue"])
    namespace = gang["key"][1]
    return [(queue, uid, namespace), (queue, uid, f"{namespace}/{g12_user(gang)}")]


def of_queue(world: World, name: str) -> Account:
    return (name, (world["queues"].get(name) or {"uid": ""})["uid"], "")


def g12_rates(world: World) -> Rates:
    """Which part of the cluster each account uses now: the dominant share of what the usable nodes have."""
    used: dict[Account, dict[str, int]] = {}
    for gang in world["gangs"].values():
        for account in g12_accounts(world, gang):
            amounts = used.setdefault(account, {})
            for task in gang["tasks"]:
                if task["ours"] and (task["uid"] in world["placed"] or task["status"] in ("bound", "terminating")):
                    queues.add(amounts, task["request"])
    totals = queues.totals(world)
    found: Rates = {}
    for account, amounts in used.items():
        found[account] = Fraction(0)
        for resource, count in amounts.items() if account[1] else ():
            if resource != "pods":
                total = totals.get(resource, 0)
                found[account] = max(found[account], Fraction(count, total) if total else Fraction(1))
    return found


def g12_begin(world: World) -> None:
    """What was used since the last cycle is added to what is remembered; usage is that at the time of the cycle."""
    world["usage"], world["rates"] = {}, {}
    if world["settings"]["fair"] is None:
        return
    memory, now = world["memory"], world["now"]
    if memory["rates_since"] < now:
        memory["rates_before"] = memory["rates"]
        for account, rate in memory["rates"].items():
            if rate:
                memory["used"].setdefault(account, []).append((memory["rates_since"], now, rate))
    used = {one: g12_used(world, pieces) / g12_share(world, one) for one, pieces in memory["used"].items()}
    world["usage"] = in_ranks(world, used)
    g12_charge(world)


def g12_charge(world: World) -> None:
    """What gangs use from now on, with what this cycle has placed."""
    if world["settings"]["fair"] is not None:
        world["rates"] = world["memory"]["rates"] = g12_rates(world)
        world["memory"]["rates_since"] = world["now"]
        for gang in world["gangs"].values():
            gang["usage_order"] = g12_order(world, gang)


def g12_used(world: World, pieces: list[tuple[int, int, Fraction]]) -> float:
    """The sum over time, in seconds of the whole cluster; it halves with every half-life."""
    half_life = world["settings"]["fair"]["half_life"] / adapter.SECOND
    total = 0.0
    for start, end, rate in pieces:
        since_start = (world["now"] - start) / adapter.SECOND / half_life
        since_end = (world["now"] - end) / adapter.SECOND / half_life
        total += float(rate) * half_life / math.log(2) * (2**-since_end - 2**-since_start)
    return total if total >= NEGLIGIBLE else 0.0


def g12_share(world: World, account: Account) -> int:
    """The weight of a queue; of a namespace or user what the config says, or 1."""
    if not account[2]:
        return int((world["queues"].get(account[0]) or {"weight": 1})["weight"])
    return int(world["settings"]["fair"]["shares"].get(account[2], 1))


def in_ranks(world: World, used: dict[Account, float]) -> dict[Account, Usage]:
    """Usages that hardly differ are those of accounts that change places at this instant: that which used less of late
    is before the other from now on. If neither did, they changed places before, and the small difference stays."""
    found: dict[Account, Usage] = {}
    near: list[Account] = []
    for account in sorted(used, key=lambda one: used[one]):
        if near and used[account] - used[near[-1]] >= NEGLIGIBLE:
            near = []
        near.append(account)
        change = used[account] - used[near[0]] > SAME and "nearly equal" not in world["memory"]["reading"]
        for one in near:
            rate = world["memory"]["rates_before"].get(one, Fraction(0)) / g12_share(world, one)
            found[one] = (used[near[0]], rate, used[one]) if change else (used[near[0]], *NOTHING[1:])
    return found


def g12_order(world: World, gang: Gang) -> tuple[Any, ...]:
    """Inside a queue: less usage first, then less used now; of the namespace, then of the user."""
    if world["settings"]["fair"]["by"] == "queue":
        return ()
    return tuple(g12_turn(world, account) for account in g12_accounts(world, gang))


def g12_turn(world: World, account: Account) -> tuple[Usage, Fraction]:
    rate: Fraction = world["rates"].get(account, Fraction(0))
    return (world["usage"].get(account, NOTHING), rate / g12_share(world, account))


def g12_of_queue(world: World, name: str) -> Usage:
    """By queue: what it used against its weight."""
    fair = world["settings"]["fair"]
    if fair is None or fair["by"] != "queue":
        return NOTHING
    found: Usage = world["usage"].get(of_queue(world, name), NOTHING)
    return found


# ---- the instant at which accounts change places


def g12_timers(world: World) -> None:
    """In FIFO queues and under backfill a cycle runs when accounts with gangs that wait change places."""
    fair = world["settings"]["fair"]
    if fair is None or fair["by"] == "queue":
        return
    for name, queue in world["queues"].items():
        if not queue["fifo"] and world["settings"]["backfill"] not in ("easy", "conservative"):
            continue
        there = [gang for gang in world["gangs"].values() if gang["queue"] == name]
        if sum(1 for gang in there if minima.waiting(world, gang)) < 2:
            continue
        pairs = [g12_accounts(world, gang) for gang in there]  # one cycle too many changes nothing
        for level in (0, 1):
            accounts = sorted({pair[level] for pair in pairs})
            for one in accounts:
                for other in accounts:
                    after = g12_seconds_until_behind(world, one, other)
                    if after is not None:
                        world["timers"].append(as_the_engine_counts(world, world["now"] + after * adapter.SECOND))


def g12_seconds_until_behind(world: World, first: Account, second: Account) -> float | None:
    """When the first, which is before the second now, comes to be behind it. Both usages go to what their rate keeps
    up, and half of what is left of the way is gone after each half-life."""
    half_life = world["settings"]["fair"]["half_life"] / adapter.SECOND
    ((used, *_), rate), ((more, *_), its_rate) = g12_turn(world, first), g12_turn(world, second)
    if used >= more or rate <= its_rate:
        return None
    ahead_at_last = float(its_rate - rate) * half_life / math.log(2)  # below 0: it ends up behind
    left = -ahead_at_last / (more - used - ahead_at_last)
    return half_life * -math.log2(left)


def as_the_engine_counts(world: World, at: float) -> int:
    """A cycle of the engine within a microsecond is that one: it counts in integers."""
    for instant in world["memory"]["hints"]:
        if abs(instant - at) < 2 * NEGLIGIBLE * adapter.SECOND and instant > world["now"]:
            return int(instant)
    return max(world["now"] + 1, math.ceil(at))
