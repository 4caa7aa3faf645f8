"""The record of claims: what was written is read, and what somebody else wrote over it is nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.gangs.claim_records import Record, read, write

GOOD = {"kind": "wave", "until": 5, "slots": {"work": {"n1": 2}}}


def test_as_it_is_written() -> None:
    """The same room gives the same text, whoever counted it first: it is written only when it changes."""
    one = write(Record("wave", 5, {"b": {"n2": 1, "n1": 2}, "a": {}}))
    other = write(Record("wave", 5, {"a": {}, "b": {"n1": 2, "n2": 1}}))
    assert one == other == '{"kind":"wave","until":5,"slots":{"a":{},"b":{"n1":2,"n2":1}}}'


@given(
    st.builds(
        Record,
        st.text(),
        st.integers(-(2**63), 2**63),
        st.dictionaries(st.text(), st.dictionaries(st.text(), st.integers(1, 10**6))),
    )
)
def test_what_is_written_reads_back(record: Record) -> None:
    assert read(write(record)) == record


@pytest.mark.parametrize(
    "change",
    [
        {"until": None},
        {"until": "5"},
        {"until": 5.5},
        {"kind": 1},
        {"slots": []},
        {"slots": {"work": 2}},
        {"slots": {"work": {"n1": "2"}}},
        {"slots": {"work": {"n1": 0}}},
        {"slots": {"work": {"n1": -1}}},
        {"slots": {"work": {"n1": 10**6 + 1}}},
        {"slots": {"work": {"n1": 1.5}}},
        {"more": 1},
    ],
)
def test_a_bad_record_is_none(change: dict[str, object]) -> None:
    assert read(json.dumps(GOOD)) is not None
    assert read(json.dumps({**GOOD, **change})) is None


@pytest.mark.parametrize("lacking", sorted(GOOD))
def test_an_incomplete_record_is_none(lacking: str) -> None:
    assert read(json.dumps({key: value for key, value in GOOD.items() if key != lacking})) is None


@pytest.mark.parametrize(
    "text",
    ["", " ", "{", "null", "[]", "7", '"wave"', "\ud800", '{"kind":"\ud800"}', "[" * 100_000, '{"kind":' * 30_000],
    ids=lambda text: ascii(text)[:20],
)
def test_garbage_is_none(text: str) -> None:
    assert read(text) is None


def test_what_is_too_long_was_not_written_by_us() -> None:
    long = json.dumps({**GOOD, "slots": {"work": {f"node-{i}": 1 for i in range(30_000)}}})
    assert read(long) is None


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    read(text)
