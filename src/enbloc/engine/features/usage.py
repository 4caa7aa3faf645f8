"""Charges accounts with what gangs use over time, and has their records written (G12).

Charged is every pod of ours that is assigned to a node and has not ended, from the cycle in which it is known. An
account changes only when its rate does, and its record follows in the same cycle (`cycle_ends`). Charges are kept by
`gang_read` and `reserve`; `gangs_read` tells whether the order changed; `explain` says who used more than their share.
Read `core/tables/accounts` for the arithmetic, `core/plugins/fair_share` for the order. Without that plugin nothing of
this exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.plugins.fair_share import OF_QUEUE, FairShare, user_of
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.accounts import Account, next_change, ranked, rate_of
from enbloc.engine.core.tables.queues import ROOT, Queue
from enbloc.engine.core.tables.resources import Ints
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.engine.decisions import Decision, RecordUsage
from enbloc.engine.events import EventKind
from enbloc.engine.features.queue_records import QueueRecords
from enbloc.gangs.model import GangKey
from enbloc.gangs.usage_records import MOST_ACCOUNTS, AccountRecord, UsageRecord
from enbloc.units import SECOND

_CHARGED: Final = frozenset({TaskStatus.ASSUMED, TaskStatus.BOUND, TaskStatus.RELEASING})
_BY_ORDER: Final = frozenset(
    {PendingReason.UNSCHEDULABLE, PendingReason.NOT_ENOUGH_RESOURCES, PendingReason.BLOCKED_BY_FIFO}
)
"""Reasons of gangs that would have started if others were not served first."""
_NOTHING: Final[dict[int, int]] = {}
_SPANS: Final = ((7 * 86_400, "week"), (86_400, "day"), (3_600, "hour"), (60, "minute"))


class Usage(QueueRecords[UsageRecord]):
    reorders = True

    def __init__(self, state: State, fair: FairShare, decide: Callable[[Decision], None], *, plans: bool) -> None:
        """`plans`: gangs behind others may start only if they do not delay them. Then, as in a FIFO queue, a gang may
        start because the order changed, and nothing else."""
        super().__init__(state, decide, RecordUsage)
        self._fair = fair
        self._plans = plans
        self._now_ns = 0
        self._totals: Ints = np.zeros(0, np.int64)
        self._of_gang: dict[GangKey, tuple[list[Account], dict[int, int]]] = {}
        """The accounts of each gang, and what it was last charged with."""
        self._changed: dict[int, Account] = {}
        """By identity: accounts whose rate is to be computed anew."""
        self._ranks: dict[str, tuple[tuple[str, ...], ...]] = {}
        self._due_ns: int | None = None
        if fair.by_queue:
            state.queues.usage_of = fair.usage_of

    # ---- records

    def forget(self, queue: str) -> None:
        super().forget(queue)
        for account in self._fair.accounts.get(queue, {}).values():
            account.clear()
            self._changed[id(account)] = account

    def _adopt(self) -> None:
        for queue, record in self._adopted.items():
            for name, one in record.accounts.items():
                if (name == OF_QUEUE) == self._fair.by_queue:
                    account = self._fair.account(queue, name)
                    account.usage_ns, account.as_of_ns, account.rate = one.usage_ns, one.as_of_ns, one.rate
                    self._changed[id(account)] = account
        self._adopted = {}

    def cycle_ends(self, now_ns: int) -> None:
        """The records that changed."""
        for queue in self._to_write():
            record = self._under_way[queue] = self._record(queue)
            self._decide(RecordUsage(queue, record))

    def _record(self, queue: str) -> UsageRecord:
        """The accounts that have used anything. Too many: those that have used least are forgotten, here too."""
        accounts = self._fair.accounts.get(queue, {})
        for name in [name for name, one in accounts.items() if not one.gangs and not one.used_ns and not one.rate]:
            del accounts[name]
        used = [one for one in accounts.values() if one.usage_ns or one.rate]
        if len(used) > MOST_ACCOUNTS:
            used.sort(key=lambda one: (-one.rate, -one.used_ns, one.name))
            for account in used[MOST_ACCOUNTS:]:
                account.clear()
                self._changed[id(account)] = account
        return UsageRecord(
            {one.name: AccountRecord(one.usage_ns, one.as_of_ns, one.rate) for one in used[:MOST_ACCOUNTS]}
        )

    # ---- charges

    def cycle_begins(self, now_ns: int) -> None:
        self._now_ns = now_ns
        if not self._begun:
            self._begun = True
            self._adopt()
        totals = self._state.nodes.totals()
        is_other = not np.array_equal(totals, self._totals)
        self._totals = totals
        if is_other or EventKind.QUEUE_CHANGED in self._state.events.kinds:
            self._changed.update((id(account), account) for account in self._fair.all())
        for account in self._fair.all():
            account.update_order(now_ns, self._fair.half_life_ns)

    def gang_read(self, gang: GangState) -> None:
        self._update(gang)

    def _update(self, gang: GangState) -> None:
        used: Counter[int] = Counter()
        for task in gang.tasks.values():
            if task.status in _CHARGED and task.ours:
                used.update(dict(task.cls.request))
        self._charge(gang, self._fair.charged(gang, self._state.queue_of(gang).ancestors), dict(used))

    def gang_gone(self, gang: GangState) -> None:
        self._charge(gang, [], _NOTHING)

    def _charge(self, gang: GangState, accounts: list[Account], used: dict[int, int]) -> None:
        before, charged = self._of_gang.get(gang.key, ([], _NOTHING))
        same = len(before) == len(accounts) and all(map(_is, before, accounts))
        if same and charged == used:
            return
        for account in before:
            account.gangs -= 1
            self._add(account, charged, -1)
        for account in accounts:
            account.gangs += 1
            self._add(account, used, 1)
        if accounts:
            self._of_gang[gang.key] = (accounts, used)
        else:
            self._of_gang.pop(gang.key, None)

    def _add(self, account: Account, amounts: dict[int, int], sign: int) -> None:
        for column, amount in amounts.items():
            account.used[column] = account.used.get(column, 0) + sign * amount
            if not account.used[column]:
                del account.used[column]
        self._changed[id(account)] = account

    def settle(self) -> None:
        """Charges are complete for this instant: rates follow them."""
        changed, self._changed = self._changed, {}
        for account in changed.values():
            exists = self._state.queues.get(account.queue).exists
            if not exists:
                account.clear()
            elif account.set_rate(rate_of(account.used, self._totals), self._now_ns, self._fair.half_life_ns):
                self._unwritten.add(account.queue)
            account.update_order(self._now_ns, self._fair.half_life_ns)

    def reserve(self, gangs: Sequence[GangState]) -> None:
        """Within a cycle: the next gang is chosen with what these use."""
        for gang in gangs:
            self._update(gang)
            self.settle()

    # ---- order

    def gangs_read(self) -> bool:
        self.settle()
        return self.note_ranks()

    def note_ranks(self) -> bool:
        """Notes the ranks of the accounts of gangs that wait, where these decide which gang may start. Whether they
        changed since the last cycle."""
        if self._fair.by_queue:
            return False
        ranks: dict[str, tuple[tuple[str, ...], ...]] = {}
        self._due_ns = None
        for queue in self._waiting_in():
            accounts = [one for one in self._fair.accounts.get(queue, {}).values() if one.gangs]
            for level in (False, True):  # namespaces, users
                alike = [one for one in accounts if ("/" in one.name) is level]
                ranks[f"{queue} {level}"] = ranked(alike)
                change_ns = next_change(alike, self._now_ns, self._fair.half_life_ns)
                if change_ns is not None and (self._due_ns is None or change_ns < self._due_ns):
                    self._due_ns = change_ns
        changed = ranks != self._ranks
        self._ranks = ranks
        return changed

    def _waiting_in(self) -> Iterator[str]:
        """Queues in which more than one gang waits, and the order decides which of them may start."""
        queues = self._state.queues
        decided_by_order = {name for name in self._fair.accounts if self._plans or queues.get(name).facts.fifo}
        if not decided_by_order:
            return
        gangs = (gang for key in self._of_gang if (gang := self._state.gangs.get(key)) and gang.total_pending)
        waiting = Counter(gang.spec.queue for gang in gangs)
        yield from (name for name in sorted(decided_by_order) if waiting[name] > 1)

    def due(self) -> int | None:
        return self._due_ns

    # ---- reasons

    def explain(self, gang: GangState, reason: PendingReason) -> Iterator[str]:
        """What the gang's account has used, if that is more than its share."""
        for account, others in self._compared(gang) if reason in _BY_ORDER else ():
            used = sum(one.used_ns for one in others)
            shares = {one.name or one.queue: self._share_of(one) for one in others}
            own = shares.get(account.name or account.queue, 1) / max(1, sum(shares.values()))
            times = account.used_ns / used / own if used else 0.0
            if round(times, 1) > 1:
                yield f"{self._title(account, gang)} used {times:.1f} of its share over the last {self._span()}"
                return

    def _share_of(self, account: Account) -> int:
        if account.name != OF_QUEUE:
            return account.share
        return max(1, self._state.queues.get(account.queue).facts.weight)

    def _compared(self, gang: GangState) -> Iterator[tuple[Account, list[Account]]]:
        """The accounts of a gang from the top down, each with those that it is compared with."""
        if self._fair.by_queue:
            for queue in reversed(self._state.queue_of(gang).ancestors):
                if queue.name != ROOT:
                    yield self._fair.account(queue.name, OF_QUEUE), self._siblings(queue)
            return
        accounts = [one for one in self._fair.accounts.get(gang.spec.queue, {}).values() if one.gangs or one.used_ns]
        namespace = gang.key.namespace
        yield (
            self._fair.account(gang.spec.queue, namespace),
            [one for one in accounts if "/" not in one.name],
        )
        yield (
            self._fair.account(gang.spec.queue, f"{namespace}/{user_of(gang)}"),
            [one for one in accounts if one.name.startswith(f"{namespace}/")],
        )

    def _siblings(self, queue: Queue) -> list[Account]:
        """The accounts of the queues of one parent."""
        parent = queue.ancestors[1] if len(queue.ancestors) > 1 else None
        found = []
        for name, accounts in self._fair.accounts.items():
            above = self._state.queues.get(name).ancestors
            if OF_QUEUE in accounts and (above[1] if len(above) > 1 else None) is parent:
                found.append(accounts[OF_QUEUE])
        return [one for one in found if one.gangs or one.used_ns]

    def _title(self, account: Account, gang: GangState) -> str:
        if account.name == OF_QUEUE:
            return f"queue {account.queue}"
        namespace, _, user = account.name.partition("/")
        return f"user {user}" if user else f"namespace {namespace}"

    def _span(self) -> str:
        seconds = self._fair.half_life_ns / SECOND
        for length, name in _SPANS:
            if seconds >= length:
                count = seconds / length
                return name if count == 1 else f"{count:g} {name}s"
        return f"{seconds:g} seconds"


def _is(one: Account, other: Account) -> bool:
    return one is other
