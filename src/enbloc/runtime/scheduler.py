"""The scheduler on a cluster: watch events go into the engine, its decisions go out as writes.

It keeps nothing that the API does not know: thrown away and made anew it decides the same (G11, I5).
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

from enbloc.api import core, volcano
from enbloc.api.kinds import ref_of, view
from enbloc.api.koordinator import TIMEOUT
from enbloc.api.meta import Obj, Ref, annotations_of, labels_of, name_of, namespace_of, uid_of
from enbloc.api.writes import BindPod, EmitEvent, EvictPod, Patch, Refused, WatchEvent, Write
from enbloc.cluster.port import Cluster
from enbloc.config import Config
from enbloc.engine import budgets
from enbloc.engine.cycle import cycle
from enbloc.engine.decisions import (
    Bind,
    Complain,
    Decision,
    Evict,
    Expect,
    LetIn,
    Marked,
    Pending,
    SetAside,
    TimeOut,
    Waits,
)
from enbloc.engine.engine import Engine
from enbloc.engine.marks import COMMITTED, DECISION
from enbloc.engine.nodes import node_facts
from enbloc.engine.queues import QueueFacts
from enbloc.engine.tasks import PodFacts, Stand
from enbloc.gangs import claims
from enbloc.gangs.book import GangBook, queue_hint
from enbloc.gangs.dialect import Changed
from enbloc.gangs.model import Complaint, GangKey
from enbloc.gangs.terms import EXPECTED_START, Terms, terms_of
from enbloc.gangs.volcano import LET_IN
from enbloc.units import SECOND, Quantity, format_timestamp, parse_timestamp

CYCLES_AT_ONCE = 100
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_VOLUME_KINDS = frozenset({"PersistentVolume", "PersistentVolumeClaim", "StorageClass.storage.k8s.io"})
_KINDS = GangBook.kinds | _VOLUME_KINDS | {"Pod", "Node", "Namespace", volcano.QUEUE, budgets.KIND}


class Scheduler:
    """Engine and gang book over one cluster."""

    kinds = _KINDS

    def __init__(self, cluster: Cluster, config: Config, names: frozenset[str]) -> None:
        self._cluster = cluster
        self._names = names
        self._book = GangBook(config.arbitrator, config.koordinator)
        self.engine = Engine(config)
        self._waiting: dict[str, Obj] = {}
        """Pods of ours without a node, as they came: their conditions are written back whole."""
        self._complained: dict[str, set[str]] = {}
        """By UID: what is wrong in an object as its user wrote it. Each is told once."""
        self._to_complain: list[Complaint] = []
        self._wrote = False
        self._written: dict[str, list[dict[str, Any]]] = {}
        """Conditions that were written in this cycle, by the object's uid."""

    # ---- in

    def observe(self, event: WatchEvent) -> None:
        obj, gone = event.obj, event.type == "DELETED"
        state = self.engine.state
        match event.kind:
            case "Pod":
                self._observe_pod(obj, gone)
            case "Node":
                if gone:
                    state.remove_node(name_of(obj))
                else:
                    state.put_node(node_facts(view(obj, core.Node)))
            case budgets.KIND:
                state.put_budget(obj, gone)
            case "Namespace":
                state.set_namespace(name_of(obj), {} if gone else labels_of(obj))
            case volcano.QUEUE:
                if gone:
                    state.remove_queue(name_of(obj))
                else:
                    state.put_queue(queue_facts(obj))
            case kind if kind in _VOLUME_KINDS:
                state.put_volume(kind, obj, gone)
            case _:
                self._take(self._book.observe(event))
                self._complain(obj, gone)

    def _complain(self, obj: Obj, gone: bool) -> None:
        """Notes what is wrong in an object, to be told with the next cycle."""
        if gone:
            self._complained.pop(uid_of(obj), None)
            return
        for message in self._book.complaints(obj):
            self._note(Complaint(ref_of(obj), uid_of(obj), message))

    def _note(self, complaint: Complaint) -> None:
        known = self._complained.setdefault(complaint.uid, set())
        if complaint.message not in known:
            known.add(complaint.message)
            self._to_complain.append(complaint)

    def _take(self, changed: Changed) -> None:
        """What an event meant for gangs."""
        for key in changed.gangs:
            self._read_gang(key)
        for pod in changed.pods:
            self._put_pod(pod)

    def _read_gang(self, key: GangKey) -> None:
        spec = self._book.spec(key)
        if spec is not None:
            self.engine.state.put_gang(spec)
            for complaint in spec.complaints:
                self._note(complaint)
            return
        gang = self.engine.state.gangs.get(key)
        if gang is None:
            return
        if gang.tasks:  # what runs runs on, what waits says so (V5)
            oldest = min(gang.tasks.values(), key=lambda task: (task.created, task.name))
            queue = queue_hint({"metadata": {"labels": oldest.labels}})  # as a restart would have it, not as it was
            self.engine.state.put_gang(self._book.undeclared(key, oldest.created, queue))
        else:
            self.engine.state.remove_gang(key)

    def _observe_pod(self, pod: Obj, gone: bool) -> None:
        changed = self._book.observe_pod(pod, gone)
        if gone:
            self._waiting.pop(uid_of(pod), None)
            self._complain(pod, gone)
            self.engine.state.remove_pod(uid_of(pod))
        else:
            self._put_pod(pod)
        self._take(changed)

    def _put_pod(self, pod: Obj) -> None:
        uid = uid_of(pod)
        facts = pod_facts(pod, self._names)
        if facts.ours and not facts.node:
            self._waiting[uid] = pod
            self._complain(pod, gone=False)
        else:
            self._waiting.pop(uid, None)
        membership = self._book.member(pod)
        self.engine.state.put_pod(
            facts, membership, lambda: self._book.undeclared(membership.gang, facts.created, queue_hint(pod))
        )

    # ---- out

    def schedule(self, now: int) -> bool:
        """One cycle. Says whether anything was written. What a cycle changes may help others: if no write of it comes
        back as an event to wake them, the next cycle follows at once."""
        self._wrote = False
        complaints, self._to_complain = self._to_complain, []
        for one in complaints:
            self._write(EmitEvent(one.ref, one.uid, "Warning", "BadValue", one.message))
        for _ in range(CYCLES_AT_ONCE):
            half_done: set[GangKey] = set()
            self._written = {}
            for decision in cycle(self.engine, now):
                self._carry_out(decision, now, half_done)
            if self._wrote or not self.engine.busy():
                break
        return self._wrote

    def due(self) -> int | None:
        return self.engine.due()

    def pending(self) -> list[Pending]:
        return self.engine.pending()

    def _carry_out(self, decision: Decision, now: int, half_done: set[GangKey]) -> None:
        match decision:
            case Bind():
                self._bind(decision, half_done)
            case LetIn():
                self._let_in(decision, now)
            case Waits():
                self._say(decision, now)
            case SetAside():
                self._set_aside(decision, now, half_done)
            case Expect():
                self._expect(decision)
            case TimeOut():
                for namespace, name, uid in decision.pods:
                    patch = {"metadata": {"annotations": {TIMEOUT: "true"}}}
                    if not self._write(Patch(Ref("Pod", namespace, name), patch, uid=uid)):
                        self.engine.state.unplace(uid)
            case Complain():
                home = self._book.home(decision.gang)
                if home is not None:
                    self._write(EmitEvent(ref_of(home), uid_of(home), "Warning", "BadValue", decision.message))
            case Evict():
                self._evict(decision, half_done)
            case Marked():
                ref = Ref("Pod", decision.namespace, decision.name)
                self._write(Patch(ref, {"metadata": {"annotations": {COMMITTED: decision.mark}}}, uid=decision.uid))

    def _let_in(self, decision: LetIn, now: int) -> None:
        """The group's phase says so, and a condition since when; what kept it out no longer holds."""
        group = self._book.object(decision.gang)
        if group is None:
            return
        conditions = {one["type"]: one for one in self._conditions(group)}
        if "Unschedulable" in conditions:
            conditions["Unschedulable"] = _condition("Unschedulable", "False", "LetIn", "", now)
        conditions[LET_IN] = _condition(LET_IN, "True", decision.reason, "its pods may be created", now)
        self._put_status(group, {"phase": "Inqueue", "conditions": list(conditions.values())})

    def _bind(self, decision: Bind, half_done: set[GangKey]) -> None:
        """Carries a gang's Bindings out; the one that commits goes last, and only if all others were taken (G11)."""
        gangs = {decision.gang, *decision.others}
        if gangs & half_done:
            for placement in decision.placements:
                self.engine.state.unplace(placement.uid)
            return
        for namespace, claim, node in decision.claims:
            ref = Ref("PersistentVolumeClaim", namespace, claim)
            self._write(Patch(ref, {"metadata": {"annotations": {SELECTED_NODE: node}}}))
        for volume, namespace, claim in decision.volumes:
            claim_ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim}
            self._write(Patch(Ref("PersistentVolume", "", volume), {"spec": {"claimRef": claim_ref}}))
        last = len(decision.placements) - 1
        failed = False
        for position, placement in enumerate(decision.placements):
            marks = {DECISION: decision.decision}
            if position == last or not decision.commits:
                marks[COMMITTED] = decision.mark
            held_back = failed and decision.commits and position == last
            write = BindPod(placement.namespace, placement.name, placement.uid, placement.node, marks)
            if held_back or not self._write(write):
                failed = True
                self.engine.state.unplace(placement.uid)
        if failed and decision.commits:
            half_done |= gangs
        elif decision.commits:
            self._tell_bound(decision)

    def _expect(self, decision: Expect) -> None:
        """Publishes when a gang is expected to start (R8)."""
        home = self._book.home(decision.gang)
        text = format_timestamp(decision.at) if decision.at is not None else None
        if home is not None and annotations_of(home).get(EXPECTED_START) != text:
            self._write(Patch(ref_of(home), {"metadata": {"annotations": {EXPECTED_START: text}}}, uid=uid_of(home)))

    def _set_aside(self, decision: SetAside, now: int, half_done: set[GangKey]) -> None:
        """Writes a gang's claim down; if that fails nobody relies on it, and the gang is not bound (D5)."""
        group = self._book.home(decision.gang)
        text = claims.write(decision.record) if decision.record else None
        if group is None or not self._write(
            Patch(ref_of(group), {"metadata": {"annotations": {claims.ANNOTATION: text}}}, uid=uid_of(group))
        ):
            self.engine.refused(decision)
            half_done.add(decision.gang)
            self._read_gang(decision.gang)
            return
        self._write(EmitEvent(ref_of(group), uid_of(group), "Normal", decision.reason, decision.message))
        if decision.kind == claims.RESERVE and group["kind"] != "Pod":
            status = "True" if decision.record else "False"
            self._put_condition(group, _condition("Reserved", status, decision.reason, decision.message, now))

    def _evict(self, decision: Evict, half_done: set[GangKey]) -> None:
        """Nobody is evicted for a gang whose claim to the room could not be written down (P3)."""
        write = EvictPod(decision.namespace, decision.name, decision.uid, decision.reason, decision.message)
        if decision.preemptor is None:
            self._write(write)
        elif decision.preemptor in half_done or not self._write(write):
            self.engine.departures.stays(decision.uid)

    def _tell_bound(self, decision: Bind) -> None:
        for group in filter(None, map(self._book.object, (decision.gang, *decision.others))):
            nodes = Counter(placement.node for placement in decision.placements)
            where = ", ".join(f"{node} ({count})" for node, count in list(nodes.items())[:8])
            more = f" and {len(nodes) - 8} more" if len(nodes) > 8 else ""
            message = f"{len(decision.placements)} pods bound together: {where}{more}"
            self._write(EmitEvent(ref_of(group), uid_of(group), "Normal", "Scheduled", message))

    def _say(self, decision: Waits, now: int) -> None:
        """Writes why a gang waits on its object and its pods, where it does not stand there yet (G10)."""
        group = self._book.object(decision.gang) if decision.of_gang else None
        status = "True" if decision.message else "False"
        if group is not None:
            reason = decision.reason or "Scheduled"
            condition = _condition("Unschedulable", status, reason, decision.message, now)
            if self._put_condition(group, condition) and decision.message:
                self._write(EmitEvent(ref_of(group), uid_of(group), "Warning", decision.reason, decision.message))
        for _, _, uid in decision.pods:
            pod = self._waiting.get(uid)
            if pod is None:
                continue
            condition = _condition("PodScheduled", "False", "Unschedulable", decision.message, now)
            if self._put_condition(pod, condition) and decision.of_gang and group is None:
                self._write(EmitEvent(ref_of(pod), uid, "Warning", "FailedScheduling", decision.message))

    def _put_condition(self, obj: Obj, condition: dict[str, Any]) -> bool:
        conditions = {one["type"]: one for one in self._conditions(obj)}
        known = conditions.get(condition["type"])
        same = known is not None and all(known.get(key) == condition[key] for key in ("status", "reason", "message"))
        if same or (known is None and condition["status"] == "False" and condition["type"] == "Unschedulable"):
            return False
        if known is not None and known.get("status") == condition["status"]:
            condition["lastTransitionTime"] = known.get("lastTransitionTime", condition["lastTransitionTime"])
        conditions[condition["type"]] = condition
        return self._put_status(obj, {"conditions": list(conditions.values())})

    def _conditions(self, obj: Obj) -> list[dict[str, Any]]:
        """An object's conditions as they are by now: what this cycle wrote has not come back yet."""
        written = self._written.get(uid_of(obj))
        return written if written is not None else (obj.get("status") or {}).get("conditions") or []

    def _put_status(self, obj: Obj, status: dict[str, Any]) -> bool:
        self._written[uid_of(obj)] = status["conditions"]
        return self._write(Patch(ref_of(obj), {"status": status}, "status", uid_of(obj)))

    def _write(self, write: Write) -> bool:
        """One write; a refusal is a result. What it was about comes back as an event anyway."""
        try:
            self._cluster.execute(write)
        except Refused:
            return False
        self._wrote = True
        return True


def pod_facts(pod: Obj, names: frozenset[str]) -> PodFacts:
    """Reads a pod as the engine wants it."""
    metadata, spec = pod["metadata"], pod["spec"]
    phase = (pod.get("status") or {}).get("phase")
    ended = phase in ("Succeeded", "Failed")
    node = "" if ended else spec.get("nodeName") or ""
    if metadata.get("deletionTimestamp"):
        stand = Stand.LEAVING
    elif ended:
        stand = Stand.SUCCEEDED if phase == "Succeeded" else Stand.FAILED
    elif node:
        stand = Stand.BOUND
    else:
        stand = Stand.GATED if spec.get("schedulingGates") else Stand.PENDING
    annotations = annotations_of(pod)
    if stand is Stand.PENDING and annotations.get(TIMEOUT) == "true":
        stand = Stand.TIMED_OUT
    return PodFacts(
        uid=uid_of(pod),
        namespace=namespace_of(pod),
        name=name_of(pod),
        labels=labels_of(pod),
        spec=spec,
        created=_instant(metadata["creationTimestamp"]),
        priority=spec.get("priority") or 0,
        node=node,
        stand=stand,
        ours=spec.get("schedulerName") in names,
        mark=annotations.get(COMMITTED, ""),
        decision=annotations.get(DECISION, ""),
        terms=_terms(pod),
        polite=spec.get("preemptionPolicy") == "Never",
        since=_since(pod),
    )


def _terms(pod: Obj) -> Terms:
    """What it says of itself; a deadline ends it, so it runs no longer than that (R8)."""
    said = terms_of(pod)
    deadline = pod["spec"].get("activeDeadlineSeconds")
    if not isinstance(deadline, int) or deadline <= 0:
        return said
    longest = min(deadline, 10**9) * SECOND
    return said._replace(run_time=longest if said.run_time is None else min(longest, said.run_time))


def _since(pod: Obj) -> int | None:
    started = (pod.get("status") or {}).get("startTime")
    return _instant(started) if isinstance(started, str) and started else None


def queue_facts(obj: Obj) -> QueueFacts:
    """Reads a Queue as the engine wants it."""
    typed = view(obj, volcano.Queue)
    spec = typed.spec
    return QueueFacts(
        name=name_of(obj),
        weight=spec.weight if spec.weight and spec.weight > 0 else 1,
        priority=spec.priority,
        parent=spec.parent,
        capability=_nanos(spec.capability),
        guarantee=_nanos(spec.guarantee.resource if spec.guarantee else None),
        deserved=_nanos(spec.deserved),
        fifo=spec.dequeue_strategy.lower() == "fifo",
        reclaimable=spec.reclaimable is not False,
        closed=bool(typed.status and typed.status.state in ("Closed", "Closing")),
    )


def _nanos(quantities: dict[str, Quantity] | None) -> dict[str, int]:
    return {name: quantity.nanos for name, quantity in (quantities or {}).items()}


@lru_cache(maxsize=4096)
def _instant(text: str) -> int:
    return parse_timestamp(text)


def _condition(kind: str, status: str, reason: str, message: str, now: int) -> dict[str, Any]:
    stamp = format_timestamp(now)
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp}
