from __future__ import annotations

from enbloc.stale_heap import StaleHeap


def test_entries_come_by_time_and_then_in_order() -> None:
    heap: StaleHeap[str] = StaleHeap(lambda _, entry: False, 10)
    for at, entry in ((2, "c"), (1, "a"), (1, "b")):
        heap.push(at, entry)
    assert heap.pop_due(0) is None
    assert [heap.pop_due(1), heap.pop_due(1), heap.pop_due(1)] == ["a", "b", None]
    assert heap.next_ns() == 2


def test_stale_entries_are_skipped() -> None:
    stale: set[str] = set()
    heap: StaleHeap[str] = StaleHeap(lambda _, entry: entry in stale, 10)
    heap.push(1, "a")
    heap.push(2, "b")
    stale.add("a")
    assert heap.next_ns() == 2
    stale.add("b")
    assert heap.next_ns() is None
    assert heap.pop_due(9) is None


def test_the_heap_is_compacted_when_most_entries_are_stale_or_repeated() -> None:
    live = {"last"}
    heap: StaleHeap[str] = StaleHeap(lambda _, entry: entry not in live, 8)
    heap.push(10**9, "last")
    for number in range(1_000):
        heap.push(10**6 + number, "gone")
        heap.push(10**9, "last")
        assert len(heap) <= 8 + 2 * 2
    assert heap.pop_due(10**9) == "last"
