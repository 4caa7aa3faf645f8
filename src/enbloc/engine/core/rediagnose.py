"""Why gangs wait, for the state as it is now (G10): each class that waits is tried once more, and nothing is kept.

A diagnosis has the numbers of the attempt that failed, and a gang that nothing could help is not attempted again (G9):
meanwhile less room, or another reason, may be left on the nodes. Code that shows the state calls this first.
"""

from __future__ import annotations

import msgspec

from enbloc.engine.core.allocate import asked_singly, places_singly, try_singly
from enbloc.engine.core.cycle import Cycle, Turn
from enbloc.engine.core.gang_groups import why_incomplete, why_not_whole
from enbloc.engine.core.ordering import Band
from enbloc.engine.core.placement.attempt import attempt
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.request import replacements, request_of
from enbloc.engine.core.queue_loop import blocker
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass, Head, SchedulingQueue
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.features.waves.waves import Waves


def rediagnose(cycle: Cycle) -> None:
    """A class that would fit by now keeps its diagnosis: what it waits for is not room."""
    queues = cycle.queues
    for queue in queues.all():
        for head, equivalence in _in_order(queue):
            with Turn(cycle, head.gang):
                why = _of_class(cycle, queue, head)
                if why is not None:
                    queues.diagnose_anew(equivalence, why)


def _of_class(cycle: Cycle, queue: SchedulingQueue, head: Head) -> Diagnosis | None:
    features, gang = cycle.features, head.gang
    why = _behind(cycle, queue, head)
    if why is not None:
        return why
    if queue is cycle.queues.admission:
        return features.why_gated(cycle, gang)
    with features.during_turn(cycle, head):
        return _why_not(cycle, gang, features.pre_filter(cycle, queue, gang, cycle.constraints(gang)))


def _in_order(queue: SchedulingQueue) -> list[tuple[Head, EquivalenceClass]]:
    """The classes that wait, each with its first gang."""
    found = []
    for equivalence in queue.equivalences():
        head = equivalence.head()
        if head is not None and equivalence.unschedulable:
            found.append((head, equivalence))
    return sorted(found, key=lambda entry: entry[0].order)


def _behind(cycle: Cycle, queue: SchedulingQueue, head: Head) -> Diagnosis | None:
    """In a FIFO queue: a gang that failed once, and before which another one waits by now."""
    order, gang = head
    name = gang.spec.queue
    if order.band is not Band.MINIMA or not cycle.state.queues.get(name).facts.fifo:
        return None
    ahead = blocker(cycle, queue, name, order)
    if ahead is None:
        return None
    each = {
        mate.key: diagnosis.behind(mate, cycle.titles.of(ahead, mate.key.namespace), name)
        for mate in cycle.groups.mates(gang)
    }
    return each[gang.key] if len(each) == 1 else msgspec.structs.replace(each[gang.key], of_gangs=each)


def _why_not(cycle: Cycle, gang: GangState, constraints: Constraints) -> Diagnosis | None:
    group = cycle.groups.of(gang)
    transaction = Transaction(cycle.state)
    if places_singly(gang):
        if gang.spec.tree is not None:  # sub-groups start as a whole: allocate decides which
            return None
        failure = try_singly(cycle, gang, asked_singly(gang), transaction, constraints)
        transaction.rollback()
        return failure
    if group is not None and not cycle.intake.may_start(group):
        return why_incomplete(cycle, group)
    if group is not None:
        return why_not_whole(cycle, group, constraints)
    if gang.missing() or replacements(gang) or cycle.features.get(Waves).of(gang):
        return None
    later = cycle.features.get(Waves).later_tasks(gang)
    request = request_of(gang)._replace(later=later)  # before reserved tasks are placed: they are needed too
    cycle.take_claimed_room(transaction, gang, later)
    failure = attempt(cycle.placer, [request], transaction, constraints)
    transaction.rollback()
    return failure
