"""The commit mark: which minima it covers, and that malformed text does no harm (G7, G11)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.engine.core.tables.commit_marks import Minima, covers, mark_of


def gang(total: int, **by_role: int) -> Minima:
    return Minima(total, by_role)


def test_as_it_is_written() -> None:
    assert mark_of(gang(5, work=2, master=3)) == "5;master=3;work=2"
    assert mark_of(gang(1)) == "1"


@pytest.mark.parametrize(
    "mark, covered",
    [
        ("5;master=3;work=2", True),
        ("6;master=3;work=2", True),
        ("5;master=4;work=2;other=1", True),
        ("5;work=2;master=3", True),
        ("4;master=3;work=2", False),  # the total was raised
        ("5;master=2;work=2", False),  # a role's minimum was raised
        ("5;master=3", False),  # a role got one
        ("9", False),
        ("", False),
        ("yes", False),
        (";;;", False),
        ("5;master=three;work=2", False),
        ("-5;master=3;work=2", False),
        ("5;master=-3;work=2", False),
        (" 5;master=3;work=2", False),
        ("5" * 5000 + ";master=3;work=2", False),
    ],
    ids=lambda value: str(value)[:30],
)
def test_g7_a_mark_covers_the_same_minima_or_less(mark: str, covered: bool) -> None:
    assert covers(mark, gang(5, master=3, work=2)) is covered


def test_nothing_is_covered_without_a_mark_not_even_a_minimum_of_none() -> None:
    assert not covers("", gang(0))
    assert covers("0", gang(0))


roles = st.text(max_size=6) | st.sampled_from(["a;b=1", "=", ";", "%3B", "ü"])
gangs = st.builds(
    lambda minimum, minima: gang(minimum, **minima),
    st.integers(0, 10**8),
    st.dictionaries(roles, st.integers(1, 10**8)),
)


@given(gangs)
def test_g11_a_mark_covers_the_gang_it_was_written_for(minima: Minima) -> None:
    """Whatever its roles are called: a PodGroup's may be called anything."""
    assert covers(mark_of(minima), minima)


@given(gangs, st.data())
def test_g7_a_raised_minimum_has_to_be_earned_anew(minima: Minima, data: st.DataObject) -> None:
    assert not covers(mark_of(minima), gang(minima.total + 1, **minima.by_role))
    raised = data.draw(st.sampled_from(["new", *minima.by_role]))
    more = {**minima.by_role, raised: minima.by_role.get(raised, 0) + 1}
    assert not covers(mark_of(minima), gang(minima.total, **more))


@given(st.text(), gangs)
def test_any_text_is_a_mark_or_none(text: str, minima: Minima) -> None:
    covers(text, minima)
