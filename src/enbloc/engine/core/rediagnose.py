"""Why gangs wait, for the state as it is now (G10): each class that waits is tried once more, and nothing is kept.

A diagnosis has the numbers of the attempt that failed, and a gang that nothing could help is not attempted again (G9):
meanwhile less room, or another reason, may be left on the nodes. Code that shows the state calls this first.
"""

from __future__ import annotations

import msgspec

from enbloc.engine.core.cycle import Cycle, Turn
from enbloc.engine.core.ordering import Band
from enbloc.engine.core.queue_loop import blocker
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass, Head, SchedulingQueue
from enbloc.engine.core.spine import attempt_unit
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis


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
        constraints = features.pre_filter(cycle, queue, gang, cycle.constraints(gang))
        failure = attempt_unit(cycle, gang, constraints, dry=True)
        return cycle.obstacles.said_by_each(gang, failure) if failure is not None else None


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
        for mate in cycle.units.mates(gang)
    }
    return each[gang.key] if len(each) == 1 else msgspec.structs.replace(each[gang.key], of_gangs=each)
