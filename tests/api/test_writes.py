"""Merge patches, by the examples of their RFC, and without harm to what they are made from."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.api.writes import merge_patch

# RFC 7386, appendix A, in its order.
EXAMPLES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize("target, patch, result", EXAMPLES)
def test_the_examples_of_rfc_7386(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


json = st.recursive(
    st.none() | st.integers(0, 3) | st.text(alphabet="xy", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=15,
)


@given(json, json)
def test_a_patch_changes_neither_itself_nor_its_target(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    merge_patch(target, patch)
    assert (target, patch) == before


@given(json, json)
def test_patching_twice_is_patching_once(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


def takes_away(patch: Any, found: Any) -> bool:
    """Whether every key that the patch sets to null, however deep, is gone."""
    if not isinstance(patch, dict):
        return True
    return all(key not in found if value is None else takes_away(value, found[key]) for key, value in patch.items())


@given(json, json)
def test_a_null_takes_away(target: Any, patch: Any) -> None:
    assert takes_away(patch, merge_patch(target, patch))


@given(st.dictionaries(st.sampled_from("abc"), json))
def test_what_a_patch_does_not_name_is_shared(target: dict[str, Any]) -> None:
    """Controllers see by identity that a spec did not change."""
    patched = merge_patch(target, {"status": {"phase": "Running"}})
    assert all(patched[key] is value for key, value in target.items())
