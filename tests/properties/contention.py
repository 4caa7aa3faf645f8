"""A cluster that looks at whatever is done about too little room, and what must hold of every load (see `loads`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec

from enbloc.api.meta import Obj, annotations_of, labels_of, name_of, namespace_of, uid_of
from enbloc.api.writes import BindPod, EvictPod, Patch, Write
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.settle import Plane
from enbloc.config import Config, parse
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.plugins import plugin
from enbloc.engine.core.state.state import State
from enbloc.engine.decisions import Bind, Decision, Evict, Expect, SetAside, Waits
from enbloc.engine.engine import Engine
from enbloc.engine.features.backfill.easy_backfill import EasyBackfill
from enbloc.engine.features.evict.evictable import Evictable
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.planner import Planner
from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.hints import COOLDOWN, PREEMPTABLE
from enbloc.gangs.model import GangKey
from enbloc.gangs.registry import GangRegistry
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.clock import EPOCH
from enbloc.sim.result import Result
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND, parse_duration, parse_quantity, parse_timestamp
from properties.loads import CLASSES, Kind, Load
from properties.world import Overseen, Overseer, bound_lines, fresh_scheduler, members, missing, requests_of, seen
from support import manifests as m

ENDLESS = 2**63 - 1
HOMES = ("PodGroup.scheduling.volcano.sh", "Pod")
BUDGET = "PodDisruptionBudget.policy"


# ---- what is looked at while a load runs


class Evicted(NamedTuple):
    """Room that is being made for a gang."""

    preemptor: GangKey
    at: int
    victims: tuple[str, ...]
    pods: tuple[str, ...]
    """Who is to have the room."""
    nodes: frozenset[str]


class Watcher(Overseer):
    """Checks every Binding, eviction and claim as it is written, and every cycle (I4, R, P)."""

    def __init__(self, store: Store, config: Config, calm: bool) -> None:
        super().__init__(store)
        self.config = config
        self.calm = calm
        """Nothing is lost or deleted: every gang that evicted pods lands."""
        self.now = 0
        self.making: list[Evicted] = []
        self.evictions: list[tuple[GangKey, GangKey]] = []
        """(whose pod left, for whom)"""
        self.expected: dict[GangKey, list[tuple[int, int]]] = {}
        """When it was published, and what."""
        self.started: dict[GangKey, int] = {}
        self.bound_at: dict[str, int] = {}
        """By name: when a pod was bound last."""
        self._evicts: dict[str, Evict] = {}

    # ---- cycles

    def watch_engine(self, engine: Engine) -> None:
        if self.engine is engine:
            return
        self.engine = engine
        end = engine.end

        def ended(cycle: Cycle) -> list[Decision]:
            decisions = end(cycle)
            engine.state.validate()
            self._note(decisions)
            return decisions

        engine.end = ended  # type: ignore[method-assign]

    def _note(self, decisions: Sequence[Decision]) -> None:
        assert self.engine is not None
        self._evicts = {}
        records: dict[GangKey, claim_records.Record] = {}
        victims: dict[GangKey, list[str]] = {}
        for each in decisions:
            match each:
                case SetAside(kind=ClaimKind.PREEMPT, record=None, reason="PreemptionReleased"):
                    self._released(each)
                case SetAside(kind=ClaimKind.PREEMPT, record=claim_records.Record()):
                    records[each.gang] = each.record
                case Evict(preemptor=GangKey()):
                    self._evicts[each.uid] = each
                    victims.setdefault(each.preemptor, []).append(each.uid)
                    self.evictions.append((each.gang, each.preemptor))
                case Expect(at_ns=int()):
                    self.expected.setdefault(each.gang, []).append((self.now, each.at_ns))
                case Bind(commits=True):
                    for key in (each.gang, *each.others):
                        self.started.setdefault(key, self.now)
        for key, uids in victims.items():
            assert key in records, f"P3: room was made for {key}, and it has no claim"
            slots = records[key].slots
            nodes = frozenset(name for places in slots.values() for name in places)
            self.making.append(Evicted(key, self.now, tuple(uids), tuple(slots), nodes))

    def _released(self, answer: SetAside) -> None:
        """R5: a claim may be released for a gang of higher priority: its preemptor need not land then."""
        assert self.engine is not None
        mine = self.engine.state.gangs[answer.gang]
        title = answer.message.removeprefix("released for ").removesuffix(", of higher priority")
        above = [gang for gang in self.engine.state.gangs.values() if gang.spec.title == title]
        assert any(gang.priority > mine.priority for gang in above), f"R5: {answer}"
        self.making = [one for one in self.making if one.preemptor != answer.gang]

    def cycle_ended(self) -> None:
        super().cycle_ended()
        for key in {each.gang for each in self._evicts.values()}:
            self._whole_or_enough(key)
        self._evicts = {}

    def _whole_or_enough(self, key: GangKey) -> None:
        """P1: a gang is taken below its minimum only as a whole."""
        assert self.engine is not None
        gang = self.engine.state.gangs.get(key)
        if gang is None:
            return
        left, done = Counter[str](), Counter[str]()
        for each in members(self.store, key):
            if each["metadata"].get("deletionTimestamp"):
                continue
            phase = each["status"].get("phase")
            if phase == "Succeeded":
                done[GangRegistry().member(each).role] += 1
            elif each["spec"].get("nodeName") and phase != "Failed":
                left[GangRegistry().member(each).role] += 1
        counts = left + done
        enough = counts.total() >= gang.minima.total
        enough = enough and all(counts[role] >= least for role, least in gang.spec.minima.items())
        assert enough or not left, f"P1: {key} was left with {dict(left)} of {gang.minima.total} {gang.spec.minima}"

    def at_rest(self) -> None:
        """P1: a gang that evicted pods starts when they are gone, at the latest."""
        assert self.engine is not None
        there = {uid_of(pod): pod for pod in self.store.list("Pod")[0]}
        still: list[Evicted] = []
        for one in self.making:
            if all(self.bound_at.get(name, -1) >= one.at for name in one.pods):
                continue
            if one.preemptor not in self.engine.state.gangs or not missing(self.store, one.preemptor, self.engine):
                continue
            left = [pod for pod in there.values() if pod["spec"].get("nodeName") in one.nodes]
            leaving = any(pod["metadata"].get("deletionTimestamp") for pod in left)  # others' victims are counted on
            gone = not leaving and not any(uid in there for uid in one.victims)
            assert not (gone and self.calm), f"P1: evicted in vain for {one.preemptor} at {(one.at - EPOCH) / SECOND}s"
            if not gone:
                still.append(one)
        self.making = still

    # ---- writes

    def execute(self, write: Write) -> Obj | None:
        match write:
            case BindPod():
                self._check_claims(write)
            case EvictPod() if write.uid in self._evicts:
                self._check_victim(write, self._evicts[write.uid])
        found = super().execute(write)
        if isinstance(write, BindPod):
            self.bound_at[write.name] = self.now
        annotations = (write.patch.get("metadata", {}).get("annotations") or {}) if isinstance(write, Patch) else {}
        if isinstance(write, Patch) and claim_records.ANNOTATIONS & annotations.keys():
            self._check_reserved()
            self._check_made(write)
        return found

    def records(self) -> Iterator[tuple[GangKey, claim_records.Record, dict[str, Obj]]]:
        """Every record: whose it is, and those of its pods that still wait."""
        for kind in HOMES:
            for home in self.store.list(kind)[0]:
                for record in claim_records.read_all(annotations_of(home)).values():
                    pods = [self.store.get("Pod", namespace_of(home), name) for name in record.slots]
                    waiting = {name_of(pod): pod for pod in pods if pod is not None and not pod["spec"].get("nodeName")}
                    if waiting:
                        yield GangRegistry().member(next(iter(waiting.values()))).gang, record, waiting

    def _check_claims(self, write: BindPod) -> None:
        """I4."""
        assert self.engine is not None
        pod = self.store.get("Pod", write.namespace, write.name)
        assert pod is not None
        own = GangRegistry().member(pod).gang
        asked = Counter(requests_of(pod))
        claimed = asked + Counter()
        records = list(self.records())
        mine = [record for key, record, _ in records if key == own]
        kept = any(self._is_kept(record, write) for record in mine)
        for key, record, waiting in records:
            if key == own:
                continue
            here = [each for name, each in waiting.items() if write.node in record.slots[name]]
            if record.kind == ClaimKind.PREEMPT:
                for each in here:
                    claimed.update(requests_of(each))
            elif record.kind == ClaimKind.RESERVE and here and not kept and set(+asked) != {"pods"}:
                self._check_in_time(write, key, record, waiting)
        if claimed == asked:
            return
        for other in self._on(write.node):
            if not other["metadata"].get("deletionTimestamp"):
                claimed.update(requests_of(other))
        room = self._room(write.node)
        over = [name for name, amount in asked.items() if amount and claimed[name] > room.get(name, 0)]
        assert not over, f"I4: {write.name} is bound to room on {write.node} that is being made for others: {over}"

    @staticmethod
    def _is_kept(record: claim_records.Record, write: BindPod) -> bool:
        """Whether room there is kept for the pod itself, or was made for its gang."""
        if record.kind == ClaimKind.PREEMPT:
            return any(write.node in nodes for nodes in record.slots.values())
        return write.node in record.slots.get(write.name, ())

    def _check_in_time(
        self, write: BindPod, gang: GangKey, record: claim_records.Record, waiting: dict[str, Obj]
    ) -> None:
        """R5: a gang of higher priority is not bound by the reservation; R8: nor is a pod that ends in time."""
        assert self.engine is not None
        state = self.engine.state
        if gang in state.gangs and state.tasks[write.uid].gang.priority > state.gangs[gang].priority:
            return
        run_time = state.tasks[write.uid].run_time_ns
        assert run_time is not None, f"R5: {write.name} is bound to {write.node}, which {gang} has reserved"
        due = self.due(record, waiting)
        late = (self.now + run_time - due) / SECOND
        assert late <= 0, f"R8: {write.name} is bound to {write.node} and ends {late}s after {gang} is due"

    def due(self, record: claim_records.Record, waiting: dict[str, Obj]) -> int:
        """When the last of the reserved nodes has the room."""
        assert self.engine is not None
        wanted: dict[str, Counter[str]] = {}
        for name, each in waiting.items():
            wanted.setdefault(next(iter(record.slots[name])), Counter()).update(requests_of(each))
        found = self.now
        for place, amounts in wanted.items():
            free = Counter(self._room(place))
            ends = []
            for other in self._on(place):
                free.subtract(requests_of(other))
                ends.append((self._end(other), other))
            for end, other in sorted(ends, key=lambda pair: pair[0]):
                if all(free[name] >= amount for name, amount in amounts.items()):
                    break
                found = max(found, end)
                free.update(requests_of(other))
        return found

    def _end(self, pod: Obj) -> int:
        assert self.engine is not None
        if pod["metadata"].get("deletionTimestamp"):
            return self.now
        run_time = self.engine.state.tasks[uid_of(pod)].run_time_ns
        if run_time is None:
            return ENDLESS
        since = pod["status"].get("startTime")
        return max(self.now, (parse_timestamp(since) if since else self.now) + run_time)

    def _on(self, name: str) -> list[Obj]:
        return [
            pod
            for pod in self.store.list("Pod")[0]
            if pod["spec"].get("nodeName") == name and pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]

    def _room(self, name: str) -> dict[str, int]:
        found = self.store.get("Node", "", name)
        assert found is not None
        return {key: parse_quantity(text).nanos for key, text in found["status"]["allocatable"].items()}

    def _check_reserved(self) -> None:
        """R4, R6."""
        reserved: dict[str, Counter[str]] = {}
        for _, record, waiting in self.records():
            if record.kind == ClaimKind.RESERVE:
                for name, pod in waiting.items():
                    reserved.setdefault(next(iter(record.slots[name])), Counter()).update(requests_of(pod))
        nodes = {name_of(node) for node in self.store.list("Node")[0]}
        if not self.calm and not reserved.keys() <= nodes:
            return  # what was lost is about to be given up
        for name, amounts in reserved.items():
            room = self._room(name)
            over = [key for key, amount in amounts.items() if amount > room.get(key, 0)]
            assert not over, f"R4: more of {over} is reserved on {name} than it has"
        limit = -(-len(nodes) * self.config.reserve.node_percent // 100)
        assert not self.calm or len(reserved) <= limit, f"R6: {sorted(reserved)} are reserved, of {len(nodes)} nodes"

    def _check_made(self, write: Patch) -> None:
        """R5: no gang makes room for itself where another has a reservation."""
        record = claim_records.read(write.patch["metadata"]["annotations"].get(ClaimKind.PREEMPT.annotation))
        if record is None:
            return
        nodes = {name for places in record.slots.values() for name in places}
        for key, other, waiting in self.records():
            if other.kind == ClaimKind.RESERVE and not waiting.keys() & record.slots.keys():
                reserved = {name for pod in waiting for name in other.slots[pod]}
                assert not nodes & reserved, f"R5: room is made on {nodes & reserved}, which {key} has reserved"

    def _check_victim(self, write: EvictPod, decision: Evict) -> None:
        """P2, and P1's order of priorities."""
        assert self.engine is not None
        assert decision.preemptor is not None
        state = self.engine.state
        pod = self.store.get("Pod", write.namespace, write.name)
        assert pod is not None
        victim, preemptor = state.gangs[decision.gang], state.gangs[decision.preemptor]
        if decision.reason == "Preempted":
            assert victim.priority < preemptor.priority, f"P1: {write.name} is not below {preemptor}"
            assert victim.spec.queue == preemptor.spec.queue, f"P1: {write.name} is in another queue than {preemptor}"
        else:
            assert victim.spec.queue != preemptor.spec.queue
            assert state.queues.get(victim.spec.queue).facts.reclaimable, f"P2: {write.name}'s queue gives nothing"
        said = {**labels_of(pod), **annotations_of(pod)}
        assert said.get(PREEMPTABLE) != "false", f"P2: {write.name} is protected"
        if COOLDOWN in said:
            since = pod["status"].get("startTime")
            assert since is not None, f"P2: {write.name} has not run yet"
            cool = parse_timestamp(since) + parse_duration(said[COOLDOWN])
            assert cool <= self.now, f"P2: {write.name} has not cooled down"
        for budget in self.store.list(BUDGET)[0]:
            self._check_budget(budget["spec"], pod)

    def _check_budget(self, spec: Obj, pod: Obj) -> None:
        wanted = spec["selector"]["matchLabels"].items()
        if not wanted <= labels_of(pod).items():
            return
        expected = [
            each
            for each in self.store.list("Pod")[0]
            if wanted <= labels_of(each).items() and each["status"].get("phase") not in ("Succeeded", "Failed")
        ]
        healthy = sum(
            each["status"].get("phase") == "Running" and not each["metadata"].get("deletionTimestamp")
            for each in expected
        )
        least = spec["minAvailable"] if "minAvailable" in spec else len(expected) - spec["maxUnavailable"]
        assert healthy - 1 >= least, f"P2: {name_of(pod)} goes against a budget: {healthy} healthy, {least} needed"


class Watched(Overseen):
    """A control plane with a watcher."""

    def schedule(self, now: int) -> bool:
        assert isinstance(self.overseer, Watcher)
        self.overseer.now = now
        self.overseer.watch_engine(self.scheduler.engine)
        return super().schedule(now)


class Run(Simulation):
    """One run of a load. With `probed`, it is checked at every rest whether anything was left undecided (I7, G9), and
    whether a scheduler that starts then would know the same (I5)."""

    def __init__(self, load: Load, *, calm: bool, probed: bool = False, more: Sequence[Obj] = ()) -> None:
        self.watcher: Watcher | None = None
        self._calm = calm
        self._probed = probed
        documents = [Document("f", number, value) for number, value in enumerate([*load.documents, *more], 1)]
        super().__init__(read_scenario(documents), parse(load.config), self._watched)

    def _watched(self, store: Store, config: Config) -> Plane:
        if self.watcher is None:
            self.watcher = Watcher(store, config, self._calm)
        self.watcher.engine = None
        return Watched(self.watcher, config)

    @property
    def engine(self) -> Engine:
        assert isinstance(self._plane, Watched)
        return self._plane.scheduler.engine

    def _settle(self) -> None:
        super()._settle()
        assert self.watcher is not None
        self.watcher.at_rest()
        if self._probed:
            self._probe()

    def _probe(self) -> None:
        now, engine = self._clock.now_ns, self.engine
        scheduler, cluster = fresh_scheduler(self._store, self._config)
        scheduler.schedule(now)
        assert cluster.tried == [], f"I5: a new scheduler wants {cluster.tried[:3]}"
        mine, fresh = known(engine), known(scheduler.engine)
        for what in mine:
            assert mine[what] == fresh[what], f"I5: {what}: {_difference(mine[what], fresh[what])}"
        self._check_ledger()
        found = engine.run(now)
        assert found == [], f"I7: {found[:3]}"
        engine.force()
        found = [each for each in engine.run(now) if not _is_a_word(each)]
        assert found == [], f"I7: a wake-up was lost: {found[:3]}"

    def _check_ledger(self) -> None:
        """What could be freed is what one would count now."""
        evictions = self.engine.features.get(EvictionHistory)
        kept, anew = evictions.evictable, Evictable(self.engine.state, evictions.immunity)
        for cell in {*kept.cells(), *anew.cells()}:
            assert (kept.freed([cell]) == anew.freed([cell])).all(), f"P: the ledger is out of date for {cell}"


def known(engine: Engine) -> dict[str, Any]:
    """What an engine knows, and what it has promised to whom."""
    found = seen(engine)
    gangs = engine.state.gangs
    for key, (spec, *rest) in found["gangs"].items():
        if spec.object is None:  # which of its pods carries the record is known when that comes back
            observed = msgspec.structs.replace(spec.observed, claim_home="")
            found["gangs"][key] = (msgspec.structs.replace(spec, observed=observed), *rest)
    found["reserved"] = {
        gang.key: dict(engine.parts.claims.closing.of(gang)) for gang in engine.parts.claims.closing.gangs()
    }
    found["due"] = {
        key: max(due, engine.now_ns) for key, due in engine.parts.claims.closing.due_ns.items() if key in gangs
    }
    found["nominated"] = {
        claim.gang.key: {task.name: task.node for task in engine.parts.claims.nominated(claim.gang)}
        for claim in engine.parts.claims.all(ClaimKind.PREEMPT)
    }
    return found


def _is_a_word(decision: Decision) -> bool:
    """Why a gang waits, or that its start is unknown, may be worded otherwise when it is tried again."""
    return isinstance(decision, Waits) or (isinstance(decision, Expect) and decision.at_ns is None)


def _difference(one: Any, other: Any) -> str:
    """The first thing that is not the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        return f"{keys[0]}: {_difference(one.get(keys[0]), other.get(keys[0]))}" if keys else "the order"
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return next(_difference(*pair) for pair in zip(one, other, strict=True) if pair[0] != pair[1])
    if hasattr(one, "__struct_fields__") and hasattr(other, "__struct_fields__"):
        names = [name for name in one.__struct_fields__ if getattr(one, name) != getattr(other, name)]
        return f"{names[0]}: {_difference(getattr(one, names[0]), getattr(other, names[0]))}"
    return f"{one} became {other}"


def _facts(state: State) -> object:
    """What a plan may touch, compared as it is: sets that are equal may be written in another order."""
    return (
        state.nodes.free.tolist(),
        [(queue.name, queue.used.tolist(), queue.demand.tolist()) for queue in state.queues.queues.values()],
        [(key, +Counter(gang.pending), +Counter(gang.occupied)) for key, gang in state.gangs.items()],
        [(uid, task.status, task.node) for uid, task in state.tasks.items()],
        state.stateful.digest(),
    )


@contextmanager
def undoing() -> Iterator[None]:
    """Plans and forecasts that leave a trace are found out (architecture, 11)."""

    def held_to(method: Any) -> Any:
        def checked(self: Any, *arguments: Any) -> Any:
            before = _facts(self._state)
            found = method(self, *arguments)
            assert _facts(self._state) == before, f"a plan was not undone: {method.__qualname__}"
            return found

        return checked

    with ExitStack() as stack:
        for owner, name in ((Planner, "find"), (EasyBackfill, "_forecast")):
            stack.enter_context(patch.object(owner, name, held_to(getattr(owner, name))))
        stack.enter_context(patch.object(plugin, "_third_party", lambda config: []))  # looking for some takes time
        yield


def run(load: Load, *, calm: bool, probed: bool = False, more: Sequence[Obj] = ()) -> tuple[Run, Result]:
    with undoing():
        simulation = Run(load, calm=calm, probed=probed, more=more)
        result = simulation.run()
    assert result.ended == "idle", f"livelock: {result.diagnosis}"
    return simulation, result


# ---- what must hold of a load


def check(load: Load, kind: Kind) -> Run:
    """Runs a load as it is, with a check at every rest, and with restarts: every time the same is done."""
    calm = not kind.losses
    first, result = run(load, calm=calm)
    watcher = first.watcher
    assert watcher is not None
    _nobody_in_turn(watcher, result)
    if kind.exact:
        _no_head_is_late(watcher, load)
    assert result.timeline == run(load, calm=calm)[1].timeline, "I6: the same input had another output"
    _same(result, run(load, calm=calm, probed=True)[1], "I7: asking", in_order=calm)
    instants = sorted({line.t for line in result.timeline})
    for later in (0.0, 0.5):
        restarts = [m.step(f"{instant + later}s", "restart-scheduler") for instant in instants]
        restarted = run(load, calm=calm, more=restarts)[1]
        _same(result, restarted, f"I5: restarting {later}s after every instant", in_order=calm)
    return first


def _same(one: Result, other: Result, what: str, in_order: bool) -> None:
    """Where something was lost, the order within an instant may differ: who is bound, when and where may not."""
    lines = (bound_lines(one), bound_lines(other))
    for before, after in zip_longest(*(lines if in_order else map(sorted, lines))):
        assert before == after, f"{what} made a difference: {before} became {after}"


def _nobody_in_turn(watcher: Watcher, result: Result) -> None:
    """P3: no two evict each other in turn, and evictions come to an end."""
    pairs = set(watcher.evictions)
    for victim, preemptor in pairs:
        assert (preemptor, victim) not in pairs, f"P3: {victim} and {preemptor} evict each other"
    gangs = {key for pair in pairs for key in pair}
    pods = {line.name for line in result.timeline if line.what == "created" and line.kind == "Pod"}
    assert len(watcher.evictions) <= len(pods) * len(gangs), f"P3: {len(watcher.evictions)} evictions"
    assert not watcher.making, f"P1: evicted, and nothing came of it: {watcher.making}"


def _no_head_is_late(watcher: Watcher, load: Load) -> None:
    """EASY: the head starts when that was foreseen, at the latest, unless a higher one came after that."""
    arrivals = {name_of(document): document for document in load.documents if document["kind"] in ("PodGroup", "Pod")}
    values = {name_of(each): each["value"] for each in CLASSES}

    def rank(name: str) -> int:
        return values.get(arrivals[name]["spec"].get("priorityClassName"), 0)

    def came(name: str) -> int:
        return EPOCH + parse_duration(annotations_of(arrivals[name])["sim.enbloc.dev/at"])

    for key, reported in watcher.expected.items():
        at, expected = reported[0]
        started = watcher.started.get(key)
        if started is not None and started <= expected:
            continue
        higher = [name for name in arrivals if rank(name) > rank(key.name)]
        later = [
            name for name in higher if came(name) > at or _is_elastic(name, load)
        ]  # its surplus too is higher (G3)
        assert later, (
            f"R8: {key} was to start at {(expected - EPOCH) / SECOND}s: {started and (started - EPOCH) / SECOND}"
        )


def _is_elastic(group: str, load: Load) -> bool:
    pods = [one for one in load.documents if one["kind"] == "Pod"]
    members = [one for one in pods if annotations_of(one).get(m.GROUP_NAME) == group]
    specs = [one["spec"] for one in load.documents if one["kind"] == "PodGroup" and name_of(one) == group]
    return any(spec["minMember"] < len(members) for spec in specs)
