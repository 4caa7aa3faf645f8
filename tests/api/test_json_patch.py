"""JSON patches: `apply` and `diff` of RFC 6902."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.api import json_patch
from enbloc.api.writes import Refused


@pytest.mark.parametrize(
    "target, operations, wanted",
    [
        ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": {"b": 1}}, [{"op": "remove", "path": "/a/b"}], {"a": {}}),
        ({"a": [1, 2]}, [{"op": "replace", "path": "/a/0", "value": 9}], {"a": [9, 2]}),
        ({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": {"~": 1}}, [{"op": "replace", "path": "/a~1b/~0", "value": 2}], {"a/b": {"~": 2}}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": 5}], 5),
    ],
)
def test_apply(target: Any, operations: Any, wanted: Any) -> None:
    before = repr(target)
    assert json_patch.apply(target, operations) == wanted
    assert repr(target) == before


@pytest.mark.parametrize(
    "operations, code",
    [
        ({}, 400),
        ([1], 400),
        ([{"op": "fly", "path": "/a"}], 400),
        ([{"op": "add", "path": "a", "value": 1}], 400),
        ([{"op": "add", "path": "/a"}], 400),
        ([{"op": "remove", "path": "/b"}], 422),
        ([{"op": "replace", "path": "/l/5", "value": 1}], 422),
        ([{"op": "add", "path": "/l/01", "value": 1}], 422),
        ([{"op": "test", "path": "/a", "value": True}], 422),
        ([{"op": "move", "from": "/o", "path": "/o/p"}], 422),
        ([{"op": "remove", "path": ""}], 422),
        ([{"op": "copy", "from": "", "path": f"/x{number}"} for number in range(30)], 413),
    ],
)
def test_apply_refuses(operations: Any, code: int) -> None:
    with pytest.raises(Refused) as caught:
        json_patch.apply({"a": 1, "l": [1], "o": {}, "big": "x" * 1_000}, operations)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({}, {"a": {"b": 1}}, [{"op": "add", "path": "/a", "value": {"b": 1}}]),
        ({"a": 1, "b": 2}, {"b": 2}, [{"op": "remove", "path": "/a"}]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, [{"op": "replace", "path": "/a/b", "value": 2}]),
        ({"l": [{"n": 1}, {}]}, {"l": [{"n": 1}, {"n": 2}]}, [{"op": "add", "path": "/l/1/n", "value": 2}]),
        ({"l": [1]}, {"l": [1, 2]}, [{"op": "replace", "path": "/l", "value": [1, 2]}]),
        ({}, {"a/b~c": 1}, [{"op": "add", "path": "/a~1b~0c", "value": 1}]),
        ({"~1": 1}, {}, [{"op": "remove", "path": "/~01"}]),
        ({"": 1}, {"": 2}, [{"op": "replace", "path": "/", "value": 2}]),
        ({"a": True}, {"a": 1}, [{"op": "replace", "path": "/a", "value": 1}]),
        ({"a": None}, {"a": {}}, [{"op": "replace", "path": "/a", "value": {}}]),
    ],
)
def test_diff(before: Any, after: Any, wanted: list[dict[str, Any]]) -> None:
    assert json_patch.diff(before, after) == wanted


def _typed(value: Any) -> Any:
    """The value with types, since `True == 1`."""
    if isinstance(value, dict):
        return {key: _typed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_typed(each) for each in value]
    return type(value).__name__, value


KEYS = st.text(st.sampled_from("ab/~01 é"), max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(VALUES, VALUES)
def test_a_diff_turns_one_value_into_the_other(before: Any, after: Any) -> None:
    operations = json_patch.diff(before, after)
    assert _typed(json_patch.apply(before, operations)) == _typed(after)
    assert json_patch.diff(after, after) == []
