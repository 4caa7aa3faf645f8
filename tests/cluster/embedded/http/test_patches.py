"""Strategic merge patches and server-side apply: the resulting object."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.writes import Refused
from enbloc.cluster.embedded.http.apply_shapes import ByName
from enbloc.cluster.embedded.http.server_side_apply import Application, apply
from enbloc.cluster.embedded.http.strategic import strategic_merge

CONTAINERS = {"containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]}


@pytest.mark.parametrize(
    "current, patch, wanted",
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {}),
        ({"args": [1, 2]}, {"args": [3]}, {"args": [3]}),
        ({"finalizers": ["a"]}, {"finalizers": ["b"]}, {"finalizers": ["a", "b"]}),
        ({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}, {"finalizers": ["b"]}),
        ({"strategy": {"a": 1, "b": 2}}, {"strategy": {"$retainKeys": ["b"], "b": 3}}, {"strategy": {"b": 3}}),
        (
            CONTAINERS,
            {"containers": [{"name": "b", "image": "2"}, {"name": "c"}]},
            {"containers": [CONTAINERS["containers"][0], {"name": "b", "image": "2"}, {"name": "c"}]},
        ),
        (CONTAINERS, {"containers": [{"name": "a", "$patch": "delete"}]}, {"containers": [{"name": "b"}]}),
        (
            {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]},
            {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]},
            {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}]},
        ),
        (
            {"ports": [{"containerPort": 80, "name": "w"}]},
            {"ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 81}]},
            {"ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 81}]},
        ),
        (
            {"volumes": [{"name": "x"}, {"name": "own"}, {"name": "y"}]},
            {"$setElementOrder/volumes": [{"name": "y"}, {"name": "x"}], "volumes": [{"name": "y", "a": 1}]},
            {"volumes": [{"name": "y", "a": 1}, {"name": "x"}, {"name": "own"}]},
        ),
    ],
)
def test_strategic_merges(current: Any, patch: Any, wanted: Any) -> None:
    before = repr(current)
    assert strategic_merge(current, patch) == wanted
    assert repr(current) == before


@pytest.mark.parametrize(
    "patch", [[], {"a": {"$patch": "burn"}}, {"containers": [1]}, {"containers": [{"image": "x"}]}]
)
def test_strategic_merges_that_are_none(patch: Any) -> None:
    with pytest.raises(Refused) as caught:
        strategic_merge({"a": {}}, patch)
    assert caught.value.code == 400


def applied(current: Any, manager: str, force: bool = False, kind: str = "Pod", **content: Any) -> Any:
    metadata = {"name": "p", **content.pop("metadata", {})}
    wanted = {"apiVersion": "v1", "kind": kind, "metadata": metadata, **content}
    return apply(current, Application(manager, wanted, ByName(), force, "2026-01-01T00:00:00Z"))


def test_what_a_manager_no_longer_applies_goes() -> None:
    one = applied(None, "me", metadata={"labels": {"a": "1", "b": "2"}}, spec={"containers": [{"name": "x"}]})
    live = {**one, "spec": {**one["spec"], "nodeName": "n"}}
    two = applied(live, "me", metadata={"labels": {"b": "2"}}, spec={"containers": [{"name": "x"}, {"name": "y"}]})
    assert two["metadata"]["labels"] == {"b": "2"}
    assert two["spec"] == {"containers": [{"name": "x"}, {"name": "y"}], "nodeName": "n"}
    three = applied(two, "me", spec={"containers": [{"name": "y"}]})
    assert three["spec"]["containers"] == [{"name": "y"}]
    assert three["metadata"]["name"] == "p"
    assert "labels" not in three["metadata"]


def test_applying_twice_changes_nothing() -> None:
    one = applied(None, "me", data={"a": "1"}, kind="ConfigMap")
    assert applied(one, "me", data={"a": "1"}, kind="ConfigMap") == one


def test_two_managers_share_keep_and_conflict() -> None:
    one = applied(None, "me", data={"a": "1", "b": "2"}, kind="ConfigMap")
    two = applied(one, "you", data={"b": "2", "c": "3"}, kind="ConfigMap")
    three = applied(two, "me", data={"a": "1"}, kind="ConfigMap")
    assert three["data"] == {"a": "1", "b": "2", "c": "3"}
    with pytest.raises(Refused) as caught:
        applied(three, "you", data={"a": "9"}, kind="ConfigMap")
    assert caught.value.code == 409
    assert 'conflict with "me": .data.a' in caught.value.message
    forced = applied(three, "you", True, data={"a": "9"}, kind="ConfigMap")
    assert forced["data"] == {"a": "9"}
    assert applied(forced, "me", data={}, kind="ConfigMap")["data"] == {"a": "9"}
