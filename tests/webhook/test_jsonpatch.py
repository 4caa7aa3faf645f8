"""JSON patches: they make what they should, and say no more than that."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.webhook.jsonpatch import json_patch


def applied(document: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902, as far as these patches go."""
    document = copy.deepcopy(document)
    for operation in operations:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
        if not steps:
            document = operation["value"]
            continue
        target = document
        for step in steps[:-1]:
            target = target[int(step)] if isinstance(target, list) else target[step]
        last: Any = int(steps[-1]) if isinstance(target, list) else steps[-1]
        if operation["op"] == "remove":
            del target[last]
        else:
            assert (last in target) == (operation["op"] == "replace") or isinstance(target, list)
            target[last] = operation["value"]
    return document


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
def test_patches(before: Any, after: Any, wanted: list[dict[str, Any]]) -> None:
    assert json_patch(before, after) == wanted


KEYS = st.text(st.sampled_from("ab/~01 é"), max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(VALUES, VALUES)
def test_a_patch_makes_the_one_of_the_other(before: Any, after: Any) -> None:
    operations = json_patch(before, after)
    assert repr(applied(before, operations)) == repr(after) or applied(before, operations) == after
    assert json_patch(after, after) == []
