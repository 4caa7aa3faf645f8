"""The record of claims: what was written is read, and what somebody else wrote over it is nothing."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.gangs.claim_records import ClaimKind, Record, fits, read, read_all, write

GOOD = {"kind": "wave", "until": 5, "slots": {"work": {"n1": 2}}}


def test_as_it_is_written() -> None:
    """The same room gives the same text, whoever counted it first: it is written only when it changes."""
    one = write(Record(ClaimKind.WAVE, 5, {"b": {"n2": 1, "n1": 2}, "a": {}}))
    other = write(Record(ClaimKind.WAVE, 5, {"a": {}, "b": {"n1": 2, "n2": 1}}))
    slots = '{"a":{},"b":{"n1":2,"n2":1}}'
    assert one == other == f'{{"kind":"wave","until":5,"slots":{slots},"version":1,"clock":0,"held":false}}'


@given(
    st.builds(
        Record,
        st.sampled_from(ClaimKind),
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
        {"kind": "other"},
        {"version": 2},
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


def test_r1_a_record_of_5000_pods_is_compressed_and_reads_back() -> None:
    slots = {f"train-worker-{index}": {f"node-{index * 7919 % 2000}.example.internal": 1} for index in range(5_000)}
    record = Record(ClaimKind.RESERVE, 0, slots)
    text = write(record)
    assert fits(record)
    assert len(text) < 64 * 1024
    assert read(text) == record


def test_s2_what_inflates_beyond_any_record_is_none() -> None:
    bomb = base64.b64encode(zlib.compress(b" " * (64 * 1024 * 1024))).decode()
    assert read(f"zlib:{bomb}") is None
    assert read("zlib:no base64") is None
    assert read("zlib:" + base64.b64encode(b"no zlib").decode()) is None


def test_one_record_a_kind_and_that_of_an_earlier_version() -> None:
    hold = Record(ClaimKind.HOLD, 7, {"a-0": {"n": 1}})
    reserve = Record(ClaimKind.RESERVE, 0, {"a-1": {"m": 1}})
    written = {record.kind.annotation: write(record) for record in (hold, reserve)}
    assert read_all(written) == {ClaimKind.HOLD: hold, ClaimKind.RESERVE: reserve}
    assert read_all({ClaimKind.HOLD.annotation: write(reserve)}) == {}, "a record under another kind's key"
    legacy = '{"kind":"preempt","until":0,"slots":{"a-0":{"n":1}}}'
    assert read_all({"enbloc.dev/claims": legacy}).keys() == {ClaimKind.PREEMPT}
