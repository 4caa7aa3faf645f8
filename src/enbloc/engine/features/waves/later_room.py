"""Whether a gang may claim room for pods that do not exist (S9): later waves (D5), and members of task groups.

Such a claim costs its owner nothing. So it has to be within the quotas of its namespace, together with the claims that
stand there, as if the pods existed. And an owner, a namespace in a queue, that let one lapse makes no other for as long
as that one lasted, at most for an hour: in that time others use the room. The record is on the Queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.api.pod_amounts import Amounts
from enbloc.api.quotas import Quota, least_use, quota_of
from enbloc.engine.core.claims.claim import Claim
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.decisions import Decision, RecordLapses
from enbloc.engine.features.queue_records import QueueRecords
from enbloc.engine.features.waves.waves import Waves
from enbloc.gangs.lapse_records import MOST_NAMESPACES, LapseRecord
from enbloc.gangs.model import GangKey
from enbloc.listing import plural
from enbloc.units import SECOND, format_timestamp

LONGEST_PAUSE_NS: Final = 3600 * SECOND
MOST_USES: Final = 4096
"""So many templates are remembered."""


class LaterRoom(QueueRecords[LapseRecord]):
    def __init__(self, state: State, waves: Waves, decide: Callable[[Decision], None]) -> None:
        super().__init__(state, decide, RecordLapses)
        self._waves = waves
        self._now_ns = 0
        self._quotas: dict[str, dict[str, Quota]] = {}
        """Namespace → name."""
        self._pauses: dict[str, dict[str, int]] = {}
        """Queue → namespace → until when it makes no claim."""
        self._ended: list[Claim] = []
        """Claims of gangs that are gone since the last cycle."""
        self._waiting: dict[str, dict[GangKey, GangState]] = {}
        """Namespace → gangs that have to claim room for pods that do not exist."""
        self._said: dict[GangKey, str] = {}
        """Why each of them may not, as it was last read."""
        self._changed: set[str] = set()
        """Namespaces whose gangs may have another answer by now."""
        self._standing: dict[str, list[tuple[Mapping[str, Any], int]]] = {}
        """Namespace → what is claimed there; absent: not counted yet."""
        self._uses: dict[int, tuple[Mapping[str, Any], Amounts]] = {}
        """By identity of a template's spec: what one of its pods will use of quotas."""
        waves.lapsed, waves.changed = self.note_lapse, self._note_claims

    # ---- answers

    def pre_enqueue(self, gang: GangState) -> Diagnosis | None:
        """Why a gang may not claim room for its pods that do not exist; `None`: it may, or has no need to."""
        why = self._why(gang)
        return diagnosis.claim_not_allowed(gang, why) if why else None

    def _why(self, gang: GangState) -> str:
        asked = self._waves.lacking(gang)
        if not asked:
            return ""
        namespace, queue = gang.key.namespace, gang.spec.queue
        until_ns = self._pauses.get(queue, {}).get(namespace, 0)
        if until_ns > self._now_ns:
            lapsed = f"room that namespace {namespace} claimed in queue {queue} for pods that did not come lapsed"
            return f"{lapsed}: it may claim such room again at {format_timestamp(until_ns)}"
        for _, quota in sorted(self._quotas.get(namespace, {}).items()):
            over = quota.over(self.charge(quota, gang), quota.used)
            if over:
                count = sum(asked.values())
                do = "does" if count == 1 else "do"
                asked_for = f"room for {plural(count, 'pod')} that {do} not exist"
                return f"{asked_for}, with what is claimed already, would exceed {over}"
        return ""

    def charge(self, quota: Quota, gang: GangState) -> Counter[str]:
        """What the claim of a gang adds to a quota, together with the claims of its namespace that stand."""
        found: Counter[str] = Counter()
        own = [(gang.spec.later[role].pod_spec, count) for role, count in self._waves.lacking(gang).items()]
        for spec, count in [*own, *self._standing_in(gang.key.namespace)]:
            if quota.covers(spec):
                for key, nanos in self._use(spec).items():
                    if key in quota.hard:
                        found[key] += count * nanos
        return found

    def _standing_in(self, namespace: str) -> list[tuple[Mapping[str, Any], int]]:
        """The pods that do not exist and have room in a namespace: their spec, and how many."""
        if namespace not in self._standing:
            found = self._standing[namespace] = []
            for claim in self._waves.all():
                later = claim.gang.spec.later if claim.gang.key.namespace == namespace else {}
                for role, count in Counter(task.role for task in claim.tasks if task.role in later).items():
                    found.append((later[role].pod_spec, min(count, later[role].count)))
        return self._standing[namespace]

    def _note_claims(self, namespace: str) -> None:
        self._standing.pop(namespace, None)
        self._changed.add(namespace)

    def _use(self, spec: Mapping[str, Any]) -> Amounts:
        known = self._uses.get(id(spec))
        if known is None or known[0] is not spec:
            if len(self._uses) > MOST_USES:
                self._uses.clear()
            known = self._uses[id(spec)] = (spec, least_use(spec))
        return known[1]

    # ---- what answers depend on

    def observe_quota(self, obj: Obj, gone: bool) -> None:
        namespace, name = namespace_of(obj), name_of(obj)
        quotas = self._quotas.setdefault(namespace, {})
        quotas.pop(name, None)
        if not gone:
            quotas[name] = quota_of(obj)
        if not quotas:
            del self._quotas[namespace]
        if namespace in self._waiting:
            self._changed.add(namespace)

    def gang_read(self, gang: GangState) -> None:
        if not gang.spec.templates:
            return
        if self._waves.of(gang):
            self._note_claims(gang.key.namespace)
        if self._waves.lacking(gang):
            self._waiting.setdefault(gang.key.namespace, {})[gang.key] = gang
            self._said[gang.key] = self._why(gang)
        else:
            self._forget(gang)

    def gang_gone(self, gang: GangState) -> None:
        self._forget(gang)
        claim = self._waves.claim_of(gang)
        if claim is not None and claim.slots:
            self._ended.append(claim)

    def _forget(self, gang: GangState) -> None:
        self._said.pop(gang.key, None)
        gangs = self._waiting.get(gang.key.namespace, {})
        if gangs.pop(gang.key, None) is not None and not gangs:
            del self._waiting[gang.key.namespace]

    # ---- claims that lapsed

    def note_lapse(self, claim: Claim) -> None:
        """A claim, or a part of it, ends unused in this cycle."""
        ended_ns = min(self._now_ns, claim.until_ns)
        lasted_ns = ended_ns - (claim.until_ns - self._waves.deadline_ns)
        pauses, namespace = self._pauses.setdefault(claim.queue, {}), claim.gang.key.namespace
        until_ns = ended_ns + min(lasted_ns, LONGEST_PAUSE_NS)
        if until_ns <= max(self._now_ns, pauses.get(namespace, 0)):
            return
        pauses[namespace] = until_ns
        if len(pauses) > MOST_NAMESPACES:
            del pauses[min(pauses, key=lambda one: (pauses[one], one))]
        self._unwritten.add(claim.queue)
        self._changed.add(namespace)
        self.settle()  # before other kinds of claims are reviewed

    def forget(self, queue: str) -> None:
        super().forget(queue)
        self._changed.update(self._pauses.pop(queue, {}))

    def time_passes(self, now_ns: int) -> None:
        self._now_ns = now_ns
        if not self._begun:
            self._begun = True
            for queue, record in self._adopted.items():
                most_ns = now_ns + LONGEST_PAUSE_NS
                self._pauses[queue] = {name: min(until_ns, most_ns) for name, until_ns in record.until_ns.items()}
            self._adopted = {}
        for claim in self._ended:
            self.note_lapse(claim)
        self._ended = []
        for pauses in self._pauses.values():
            for namespace in [name for name, until_ns in pauses.items() if until_ns <= now_ns]:
                del pauses[namespace]
                self._changed.add(namespace)
        self.settle()

    def due(self) -> int | None:
        """When the first of the gangs that wait for it may claim room."""
        gangs = [gang for gangs in self._waiting.values() for gang in gangs.values()] if self._pauses else []
        found = [self._pauses.get(gang.spec.queue, {}).get(gang.key.namespace) for gang in gangs]
        return min((until_ns for until_ns in found if until_ns is not None), default=None)

    # ---- every cycle

    def busy(self) -> bool:
        """Whether a gang may have another answer by now, or a record is to be written."""
        return not self._changed.isdisjoint(self._waiting) or bool(self._ended) or super().busy()

    def settle(self) -> None:
        """Gangs that have another answer than when they were last read are read anew."""
        for gang in self.outdated():
            self._state.touch(gang)

    def outdated(self) -> list[GangState]:
        found = []
        for namespace in self._changed:
            gangs = self._waiting.get(namespace, {})
            found += [gang for key, gang in gangs.items() if self._why(gang) != self._said[key]]
        self._changed.clear()
        return found

    def cycle_ends(self, now_ns: int) -> None:
        """The records that changed are written."""
        self.settle()
        for queue in self._to_write():
            record = self._under_way[queue] = LapseRecord(dict(self._pauses.get(queue, {})))
            self._decide(RecordLapses(queue, record))
