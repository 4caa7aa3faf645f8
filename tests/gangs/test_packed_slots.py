"""Slots of brief records: what is packed is unpacked, in no more bytes than announced; anything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.gangs.packed_slots import bytes_at_most, pack, unpack

DIGESTS = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", min_size=7, max_size=7)
SLOTS = st.dictionaries(DIGESTS, st.dictionaries(DIGESTS, st.integers(1, 100_000), max_size=4), max_size=20)


@given(SLOTS)
def test_what_is_packed_is_unpacked(slots: dict[str, dict[str, int]]) -> None:
    data = pack(slots)
    assert unpack(data) == slots
    assert len(data) <= bytes_at_most(slots)
    assert pack(dict(reversed(slots.items()))) == data, "the same slots give the same bytes"


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    try:
        slots = unpack(data)
    except ValueError:
        return
    assert all(len(name) == 7 for name in slots)


@given(SLOTS, st.data())
def test_a_part_of_packed_slots_is_refused(slots: dict[str, dict[str, int]], draw: st.DataObject) -> None:
    data = pack(slots)
    with pytest.raises(ValueError, match="packed slots"):
        unpack(data[: draw.draw(st.integers(0, len(data) - 1))])
    with pytest.raises(ValueError, match="packed slots"):
        unpack(data + b"\0")


def test_a_number_of_no_node_is_refused() -> None:
    data = bytearray(pack({"AAAAAAA": {"BBBBBBB": 1}}))
    assert unpack(bytes(data)) == {"AAAAAAA": {"BBBBBBB": 1}}
    data[-6:-3] = b"\0\0\1"  # the pair's node
    with pytest.raises(ValueError, match="packed slots"):
        unpack(bytes(data))
