"""Who waits: one bucket a shape, gangs by order, and sleep until something could help (G8, G9)."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from enbloc.engine.ordering import Band, Order
from enbloc.engine.queueing.scheduling_queue import EquivalenceClass, QueueEntries, SchedulingQueue, Signature
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.model import GangKey, GangSpec


def gang(name: str) -> GangState:
    return GangState(GangSpec(GangKey("pod", "ns", name), f"ns/{name}", 0, 1))


def order(priority: int, created: int, name: str) -> Order:
    return Order((-priority,), False, True, created, "ns", name, Band.MINIMA)


def put(
    waiting: SchedulingQueue, name: str, priority: int = 0, created: int = 0, shape: str = "s", queue: str = "q"
) -> EquivalenceClass:
    return waiting.put(gang(name), queue, order(priority, created, name), Signature(shape))


def heads(waiting: SchedulingQueue, queue: str = "q") -> list[str]:
    found = [equivalence.head() for equivalence in waiting.active_in(queue)]
    return [entry[1].key.name for entry in found if entry is not None]


def test_equivalent_gangs_share_a_class_and_are_in_order() -> None:
    waiting = SchedulingQueue(QueueEntries())
    young = put(waiting, "young", created=9)
    old = put(waiting, "old", created=1)
    assert young is old
    assert heads(waiting) == ["old"]
    assert [found.key.name for found in old.first(5)] == ["old", "young"]
    assert [found.key.name for found in old.first(1)] == ["old"]


def test_another_shape_priority_or_queue_is_another_bucket() -> None:
    waiting = SchedulingQueue(QueueEntries())
    equivalences = [
        put(waiting, "a"),
        put(waiting, "b", shape="t"),
        put(waiting, "c", priority=5),
        put(waiting, "d", queue="r"),
    ]
    assert len({id(equivalence) for equivalence in equivalences}) == 4
    assert sorted(waiting.active()) == ["q", "r"]
    assert [equivalence.queue for equivalence in waiting.in_queue("r")] == ["r"]
    assert sorted(heads(waiting)) == ["a", "b", "c"]


def test_g9_a_bucket_sleeps_with_all_that_is_in_it() -> None:
    waiting = SchedulingQueue(QueueEntries())
    equivalence = put(waiting, "a")
    put(waiting, "b")
    assert [found.key.name for found in waiting.sleep(equivalence, "no room")] == ["a", "b"]
    assert (equivalence.unschedulable, equivalence.diagnosis, waiting.active()) == (True, "no room", [])
    assert waiting.active_in("q") == []
    assert waiting.in_queue("q") == [equivalence]
    # One that comes now is not tried: it shares the story of those that were.
    assert put(waiting, "c") is equivalence
    assert equivalence.unschedulable
    assert waiting.active() == []
    assert equivalence.fresh == []


def test_g9_only_what_could_be_helped_wakes() -> None:
    waiting = SchedulingQueue(QueueEntries())
    one, other = put(waiting, "a", shape="s"), put(waiting, "b", shape="t")
    for equivalence in (one, other):
        waiting.sleep(equivalence, "no room")
    waiting.wake(lambda equivalence: equivalence is other)
    assert (one.unschedulable, other.unschedulable) == (True, False)
    assert heads(waiting) == ["b"]
    assert waiting.sleep(other, "still none") == []  # only new gangs report it
    waiting.wake(lambda equivalence: True)
    put(waiting, "c", shape="t")
    assert [found.key.name for found in waiting.sleep(other, "still none")] == ["c"]


def test_a_gang_that_is_put_anew_waits_only_there() -> None:
    waiting, moved = SchedulingQueue(QueueEntries()), gang("a")
    before = waiting.put(moved, "q", order(0, 0, "a"), Signature("s"))
    after = waiting.put(moved, "q", order(0, 0, "a"), Signature("t"))
    assert before.head() is None
    assert after.head() == (order(0, 0, "a"), moved)
    assert before.first(3) == []
    waiting.entries.remove(moved)
    assert after.head() is None


def test_the_same_bucket_holds_a_gang_once_however_often_it_is_put() -> None:
    waiting, again = SchedulingQueue(QueueEntries()), gang("a")
    for created in (5, 3, 4):
        equivalence = waiting.put(again, "q", order(0, created, "a"), Signature("s"))
    assert equivalence.head() == (order(0, 4, "a"), again)
    waiting.entries.remove(again)
    assert equivalence.head() is None


def test_an_empty_bucket_is_dropped_and_a_new_one_takes_its_place() -> None:
    waiting, alone = SchedulingQueue(QueueEntries()), gang("a")
    equivalence = waiting.put(alone, "q", order(0, 0, "a"), Signature("s"))
    waiting.sleep(equivalence, "no room")
    waiting.entries.remove(alone)
    waiting.wake(lambda equivalence: False)  # the class is empty
    assert not waiting.holds(equivalence)
    assert waiting.in_queue("q") == []
    again = waiting.put(alone, "q", order(0, 0, "a"), Signature("s"))
    assert again is not equivalence
    assert waiting.holds(again)
    assert heads(waiting) == ["a"]
    waiting.drop(again)
    assert list(waiting.equivalences()) == []


class Line(RuleBasedStateMachine):
    """Against a plain list of who waits where."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = SchedulingQueue(QueueEntries())
        self.gangs = {name: gang(name) for name in "abcdef"}
        self.placed: dict[str, tuple[Order, EquivalenceClass]] = {}

    @rule(
        name=st.sampled_from("abcdef"),
        queue=st.sampled_from("qr"),
        shape=st.sampled_from("st"),
        priority=st.integers(0, 1),
        created=st.integers(0, 3),
    )
    def put(self, name: str, queue: str, shape: str, priority: int, created: int) -> None:
        where = order(priority, created, name)
        self.placed[name] = (where, self.waiting.put(self.gangs[name], queue, where, Signature(shape)))

    @rule(name=st.sampled_from("abcdef"))
    def take(self, name: str) -> None:
        self.placed.pop(name, None)
        self.waiting.entries.remove(self.gangs[name])

    @rule(data=st.data())
    def sleep(self, data: st.DataObject) -> None:
        active = [equivalence for queue in self.waiting.active() for equivalence in self.waiting.active_in(queue)]
        if active:
            self.waiting.sleep(data.draw(st.sampled_from(active)), "why")

    @rule(shape=st.sampled_from("st"))
    def wake(self, shape: str) -> None:
        self.waiting.wake(lambda equivalence: equivalence.key[2] == shape)  # type: ignore[index]

    @invariant()
    def nobody_is_lost(self) -> None:
        members: dict[int, list[tuple[Order, str]]] = {}
        for name, (where, equivalence) in self.placed.items():
            assert self.waiting.holds(equivalence)
            members.setdefault(id(equivalence), []).append((where, name))
        active = {id(equivalence) for queue in self.waiting.active() for equivalence in self.waiting.active_in(queue)}
        for equivalence in self.waiting.equivalences():
            here = sorted(members.get(id(equivalence), []))
            head = equivalence.head()
            assert [name for _, name in here[:1]] == ([head[1].key.name] if head else [])
            assert [found.key.name for found in equivalence.first(99)] == [name for _, name in here]
            assert equivalence.unschedulable == (id(equivalence) not in active)


TestLine = Line.TestCase
