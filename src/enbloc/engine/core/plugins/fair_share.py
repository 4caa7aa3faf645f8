"""fair: gangs of equal priority are served by what their user, or their queue, has used over time against its share
(G12).

By user: a gang's namespace counts first, then its user in that namespace, each within the gang's queue. Users' names
are written by the namespace's tenants, so they count for nothing beyond it (S1): inventing users wins nothing from
others. By queue: queues are ordered by it, in place of what they use at the moment. This module has the accounts;
charging them is left to `features.usage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from enbloc.config.model import Fair
from enbloc.engine.core.tables.accounts import Account, in_microseconds
from enbloc.engine.core.tables.queues import ROOT, Queue
from enbloc.engine.core.tables.tasks import GangState

OF_QUEUE = ""
"""The name of the account of a queue itself."""


def user_of(gang: GangState) -> str:
    """Who submitted a gang, by its own object, or else by its oldest pod; empty: its namespace."""
    own = gang.spec.hints.user
    if own or gang.spec.object is not None or not gang.tasks:
        return own
    return min(gang.tasks.values(), key=lambda task: (task.created_ns, task.name)).hints.user


class FairShare:
    def __init__(self, settings: Fair) -> None:
        self.by_queue = settings.by == "queue"
        self.half_life_ns = settings.half_life_ns
        self._shares = settings.shares
        self.accounts: dict[str, dict[str, Account]] = {}
        """By queue and name."""

    def gang_order(self, gang: GangState) -> tuple[Account, ...]:
        return () if self.by_queue else tuple(self._of_user(gang))

    def account_of(self, gang: GangState) -> str:
        """Tells gangs of different accounts apart, whatever their usage."""
        return "" if self.by_queue else f"{gang.key.namespace}/{user_of(gang)}"

    def _of_user(self, gang: GangState) -> Iterator[Account]:
        namespace, queue = gang.key.namespace, gang.spec.queue
        yield self.account(queue, namespace)
        yield self.account(queue, f"{namespace}/{user_of(gang)}")

    def charged(self, gang: GangState, ancestors: Sequence[Queue]) -> list[Account]:
        """The accounts that a gang is charged to. `ancestors`: its queue and those above it."""
        if not self.by_queue:
            return list(self._of_user(gang))
        return [self.account(queue.name, OF_QUEUE) for queue in ancestors if queue.name != ROOT]

    def account(self, queue: str, name: str) -> Account:
        accounts = self.accounts.setdefault(queue, {})
        found = accounts.get(name)
        if found is None:
            found = accounts[name] = Account(queue, name, self._shares.get(name, 1))
        return found

    def usage_of(self, queue: Queue) -> int:
        """What a queue has used against its weight, as it is compared."""
        found = self.accounts.get(queue.name, {}).get(OF_QUEUE)
        return in_microseconds(found.used_ns / max(1, queue.facts.weight)) if found is not None else 0

    def all(self) -> Iterator[Account]:
        for accounts in self.accounts.values():
            yield from accounts.values()
