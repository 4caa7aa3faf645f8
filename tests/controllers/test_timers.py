"""When whom to look at again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from enbloc.controllers.timers import STALE_BOUND, Timers

deeds = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["set", "drop", "due"]), st.integers(0, 9)))


@given(deeds)
def test_as_a_plain_dict_would(given_deeds: list[tuple[str, str, int]]) -> None:
    timers, plain = Timers(), dict[str, int]()
    for key, deed, at in given_deeds:
        if deed == "set":
            timers.set(key, at)
            plain[key] = at
        elif deed == "drop":
            timers.cancel(key)
            plain.pop(key, None)
        else:
            due = {key for key, instant in plain.items() if instant <= at}
            assert set(timers.take_due(at)) == due
            plain = {key: instant for key, instant in plain.items() if key not in due}
        assert timers.next() == min(plain.values(), default=None)
        assert all(timers.get(key) == plain.get(key) for key in "abcd")


def test_what_was_set_anew_leaves_little_behind() -> None:
    timers = Timers()
    timers.set("first", 0)
    for at in range(10_000):
        timers.set("again", at + 1)
    assert len(timers._heap) <= STALE_BOUND + 4
    assert timers.take_due(10_000) == ["first", "again"]
