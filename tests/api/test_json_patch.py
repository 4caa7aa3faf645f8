"""JSON patches: `apply`, with the answers of the API server, and `diff`."""

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
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 1}}], {"b": 1}),
    ],
)
def test_apply(target: Any, operations: Any, wanted: Any) -> None:
    before = repr(target)
    assert json_patch.apply(target, operations) == wanted
    assert repr(target) == before


TARGET = {"a": 1, "f": 1.0, "b": True, "n": None, "l": [1, 2], "o": {"x": 1}, "": {"": 2}, "deep": [{"m": [1]}]}


@pytest.mark.parametrize(
    "operations, wanted",
    [
        # What the API server (evanphx/json-patch 4.13) does and RFC 6902 does not.
        ([{"op": "add", "path": "/l/-1", "value": 3}], {"l": [1, 2, 3]}),
        ([{"op": "add", "path": "/l/01", "value": 3}], {"l": [1, 3, 2]}),
        ([{"op": "add", "path": "/l/+1", "value": 3}], {"l": [1, 3, 2]}),
        ([{"op": "replace", "path": "/l/-1", "value": 3}], {"l": [1, 3]}),
        ([{"op": "remove", "path": "/l/-2"}], {"l": [2]}),
        ([{"op": "test", "path": "/l/-1", "value": 2}], {}),
        ([{"op": "add", "path": "/x"}], {"x": None}),
        ([{"op": "replace", "path": "/a"}], {"a": None}),
        ([{"op": "replace", "path": "/x", "value": 1}], {"x": 1}),
        ([{"op": "copy", "from": "/x", "path": "/y"}], {"y": None}),
        ([{"op": "test", "path": "/n"}], {}),
        ([{"op": "test", "path": "/x"}], {}),
        ([{"op": "test", "path": "/x", "value": None}], {}),
        ([{"op": "test", "path": "/l/0", "value": 1}, {"op": "add", "path": "no/x", "value": 1}], {"x": 1}),
        # What both do.
        ([], {}),
        ([{"op": "test", "path": "", "value": TARGET}], {}),
        ([{"op": "test", "path": "/o", "value": {"x": 1}}], {}),
        ([{"op": "add", "path": "/", "value": 1}], {"": 1}),
        ([{"op": "add", "path": "//", "value": 1}], {"": {"": 1}}),
        ([{"op": "add", "path": "/l/2", "value": 3}], {"l": [1, 2, 3]}),
        ([{"op": "add", "path": "/deep/0/m/0", "value": 0}], {"deep": [{"m": [0, 1]}]}),
        ([{"op": "move", "from": "/l/1", "path": "/l/0"}], {"l": [2, 1]}),
        ([{"op": "move", "from": "/o", "path": "/o"}], {}),
        ([{"op": "copy", "from": "/o", "path": "/o/y"}], {"o": {"x": 1, "y": {"x": 1}}}),
        (
            [{"op": "copy", "from": "/o", "path": "/y"}, {"op": "add", "path": "/y/z", "value": 2}],
            {"y": {"x": 1, "z": 2}},
        ),
    ],
)
def test_apply_as_the_api_server_does(operations: Any, wanted: dict[str, Any]) -> None:
    before = repr(TARGET)
    assert _typed(json_patch.apply(TARGET, operations)) == _typed({**TARGET, **wanted})
    assert repr(TARGET) == before


@pytest.mark.parametrize(
    "operations, code",
    [
        ({}, 400),
        ([1], 400),
        ("x", 400),
        ([[]], 400),
        ([{"op": "test", "path": "/a", "value": 1}] * 10_001, 413),
        ([{"op": "fly", "path": "/a"}], 422),
        ([{"op": "ADD", "path": "/a", "value": 1}], 422),
        ([{"op": None, "path": "/a", "value": 1}], 422),
        ([{"path": "/a"}], 422),
        ([{"op": "add", "value": 1}], 422),
        ([{"op": "add", "path": 5, "value": 1}], 422),
        ([{"op": "add", "path": "a", "value": 1}], 422),
        ([{"op": "add", "path": "", "value": {}}], 422),
        ([{"op": "add", "path": "/l/3", "value": 3}], 422),
        ([{"op": "add", "path": "/l/-4", "value": 3}], 422),
        ([{"op": "add", "path": "/l/1e0", "value": 3}], 422),
        ([{"op": "add", "path": "/l/1_0", "value": 3}], 422),
        ([{"op": "add", "path": "/l/\u0661", "value": 3}], 422),
        ([{"op": "add", "path": "/l/", "value": 3}], 422),
        ([{"op": "add", "path": "/x/y", "value": 1}], 422),
        ([{"op": "add", "path": "/a/y", "value": 1}], 422),
        ([{"op": "add", "path": "/n/y", "value": 1}], 422),
        ([{"op": "remove", "path": ""}], 422),
        ([{"op": "remove", "path": "/x"}], 422),
        ([{"op": "remove", "path": "/l/-"}], 422),
        ([{"op": "replace", "path": "", "value": 5}], 422),
        ([{"op": "replace", "path": "/l/5", "value": 1}], 422),
        ([{"op": "replace", "path": "/l/-", "value": 1}], 422),
        ([{"op": "test", "path": "/a"}], 422),
        ([{"op": "test", "path": "/a", "value": True}], 422),
        ([{"op": "test", "path": "/b", "value": 1}], 422),
        ([{"op": "test", "path": "/a", "value": 1.0}], 422),
        ([{"op": "test", "path": "/f", "value": 1}], 422),
        ([{"op": "test", "path": "/o", "value": {"x": True}}], 422),
        ([{"op": "test", "path": "/l", "value": [2, 1]}], 422),
        ([{"op": "move", "path": "/x"}], 422),
        ([{"op": "move", "from": 5, "path": "/x"}], 422),
        ([{"op": "move", "from": "", "path": "/x"}], 422),
        ([{"op": "move", "from": "/x", "path": "/y"}], 422),
        ([{"op": "move", "from": "/o", "path": "/o/p"}], 422),
        ([{"op": "copy", "from": "", "path": "/x"}], 422),
        ([{"op": "add", "path": "/z", "value": 1}, {"op": "remove", "path": "/x"}], 422),
    ],
)
def test_apply_refuses_as_the_api_server_does(operations: Any, code: int) -> None:
    with pytest.raises(Refused) as caught:
        json_patch.apply(TARGET, operations)
    assert caught.value.code == code
    if code == 422:
        assert str(caught.value).startswith("the server rejected our request due to an error in our request")


def test_copies_of_copies_are_bounded() -> None:
    doubled = [{"op": "copy", "from": "/o", "path": f"/o/{number}"} for number in range(30)]
    with pytest.raises(Refused) as caught:
        json_patch.apply({"o": {"big": "x" * 1_000}}, doubled)
    assert caught.value.code == 422


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


OBJECTS = st.dictionaries(KEYS, VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_a_diff_turns_one_value_into_the_other(before: Any, after: Any) -> None:
    operations = json_patch.diff(before, after)
    assert _typed(json_patch.apply(before, operations)) == _typed(after)
    assert json_patch.diff(after, after) == []
