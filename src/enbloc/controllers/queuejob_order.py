"""The order in which the missing pods of the QueueJobs of a namespace are created, and who waits for a quota (A4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from enbloc.api.quotas import Quota, format_amount
from enbloc.controllers.queuejob_plan import QueueJobPlan, Role, Slot

Charge = dict[tuple[str, str], int]
"""What pods take: quota and the name of what it limits → nano-units."""


class MissingPods(msgspec.Struct):
    """The pods that a job lacks, in its own order."""

    plan: QueueJobPlan
    minimum: Sequence[Slot]
    """All pods of its minimum, also those that exist."""
    owed: list[Slot]
    """Of its minimum, and replacements of pods that it lost: they come before the rest of any job."""
    needed: int
    """How many of those owed, from the first on, its minimum lacks."""
    rest: list[Slot]
    coming: frozenset[str] = frozenset()
    """Pods among those owed that are not to be created yet: in their delay, or one of that name is stopping."""
    note: str = ""
    """Why they come later, and when."""

    def remove(self, names: Collection[str]) -> None:
        """Pods that were created."""
        self.owed = [slot for slot in self.owed if slot.name not in names]
        self.rest = [slot for slot in self.rest if slot.name not in names]


def missing_pods(
    plan: QueueJobPlan,
    slots: Sequence[Slot],
    lost: Sequence[Slot],
    created: Mapping[str, int],
    needed: int,
    coming: frozenset[str],
    note: str,
) -> MissingPods:
    """`lost`: those of its pods that do not exist or have ended; `created`: how many pods of each role it had, which
    tells a replacement from a pod that never was; `needed`: how many its minimum lacks."""
    is_owed = [at < needed or slot.index < created.get(slot.role.name, 0) for at, slot in enumerate(lost)]
    owed = [slot for slot, first in zip(lost, is_owed, strict=True) if first]
    rest = [slot for slot, first in zip(lost, is_owed, strict=True) if not first]
    return MissingPods(plan, slots[: plan.minimum], owed, max(needed, 0), rest, coming, note)


class QuotaRoom:
    """What the quotas of a namespace have left."""

    def __init__(self, quotas: Iterable[Quota], charged: Charge) -> None:
        """`charged`: taken by pods that were created after the quotas were read."""
        self._quotas = {quota.name: quota for quota in quotas}
        self._free: Charge = {
            (name, key): hard - quota.used.get(key, 0) - charged.get((name, key), 0)
            for name, quota in self._quotas.items()
            for key, hard in quota.hard.items()
        }
        self._by_role: dict[int, Charge] = {}

    def charge(self, slots: Iterable[Slot]) -> Charge:
        return _sum(*(self._charge_of(slot.role) for slot in slots)) if self._quotas else {}

    def _charge_of(self, role: Role) -> Charge:
        found = self._by_role.get(id(role))
        if found is None:
            found = self._by_role[id(role)] = {
                (name, key): nanos
                for name, quota in self._quotas.items()
                for key, nanos in quota.charge(role.template["spec"]).items()
                if nanos
            }
        return found

    def holds(self, charge: Charge, beside: Charge) -> bool:
        return all(nanos + beside.get(key, 0) <= self._free[key] for key, nanos in charge.items())

    def take(self, charge: Charge) -> None:
        for key, nanos in charge.items():
            self._free[key] -= nanos

    def beyond(self, minimum: Sequence[Slot]) -> str:
        """By which limit of a quota a minimum could never be met; empty if it could."""
        for (name, key), nanos in sorted(self.charge(minimum).items()):
            hard = self._quotas[name].hard[key]
            if nanos > hard:
                asked = f"{key}={format_amount(key, nanos)}"
                return f"its minimum takes {asked} of quota {name}, whose limit is {format_amount(key, hard)}"
        return ""


def creation_order(
    lacking: Sequence[MissingPods], room: QuotaRoom, reasons: dict[str, str]
) -> Iterator[tuple[MissingPods, Slot]]:
    """First what each job is owed, job by job in the given order; then the rest, round robin over jobs.

    What cannot be created yet keeps its room. A job whose minimum the quotas cannot complete creates nothing while a
    job before it waits: `reasons` gets the reason under its UID, and jobs behind it leave it what it lacks.
    """
    first: MissingPods | None = None
    """Who waits for the quotas before the present job."""
    skipped: Charge = {}
    kept = False
    rests: list[tuple[MissingPods, list[Slot], Charge]] = []
    for one in lacking:
        if beyond := room.beyond(one.minimum):
            reasons[one.plan.uid] = beyond
            continue
        late = _later(one, room, skipped) if first is not None else frozenset()
        if first is not None and late:
            reasons[one.plan.uid] = _waits_behind(first)
        rests.append((one, list(one.rest), skipped))
        skipped = _sum(skipped, room.charge(slot for slot in one.owed if slot.name in late))
        for slot in [slot for slot in one.owed if slot.name not in late]:
            room.take(room.charge([slot]))
            if slot.name not in one.coming:
                yield one, slot
        kept = kept or bool(one.coming or late)
        if (one.coming or late or one.rest) and (first is None or (one.note and not first.note)):
            first = one
    for rank in range(max((len(rest) for _, rest, _ in rests), default=0)):
        for one, rest, before in rests:
            charge = room.charge(rest[rank : rank + 1])
            if rank < len(rest) and (not kept or room.holds(charge, before)):
                room.take(charge)
                yield one, rest[rank]


def _later(one: MissingPods, room: QuotaRoom, skipped: Charge) -> frozenset[str]:
    """The pods that a job could create now and does not, since others wait before it: all of them if the quotas cannot
    complete its minimum, else those that they cannot hold beside what the others lack."""
    total: Charge = {}
    for at, slot in enumerate(one.owed):
        total = _sum(total, room.charge([slot]))
        if not room.holds(total, skipped):
            return frozenset(slot.name for slot in one.owed[at if at >= one.needed else 0 :]) - one.coming
    return frozenset()


def refused_behind(one: MissingPods, lacking: Sequence[MissingPods], made: Collection[str]) -> dict[str, str]:
    """Why the jobs behind one, a pod of which a quota refused, create no pods."""
    behind = lacking[next(at for at, other in enumerate(lacking) if other is one) + 1 :]
    return {
        other.plan.uid: _waits_behind(one)
        for other in behind
        if any(slot.name not in made and slot.name not in other.coming for slot in other.owed)
    }


def _waits_behind(first: MissingPods) -> str:
    name = first.plan.name
    if first.note:
        return f"the quota is kept for QueueJob {name}, which comes first: {first.note}"
    return f"the quota cannot complete its minimum, and QueueJob {name}, which comes first, waits for it too"


def _sum(*charges: Charge) -> Charge:
    total: Charge = {}
    for charge in charges:
        for key, nanos in charge.items():
            total[key] = total.get(key, 0) + nanos
    return total
