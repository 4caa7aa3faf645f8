"""What users write is bounded in depth where it comes in: no nesting ends a list, a watch or a cycle (S8)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from enbloc.api import json_patch
from enbloc.api.nesting import DEPTH, is_too_deep, shallow, within_depth
from enbloc.api.writes import Refused
from enbloc.cluster.kube.discovery import Resource
from enbloc.cluster.kube.informer import Informer
from enbloc.cluster.kube.objects import read_page
from support import manifests as m
from support.simulation import simulate

LEVELS = 3_000
"""An object of 20 KB. A real API server takes it where a definition preserves unknown fields."""
POD_GROUPS = Resource(
    "PodGroup.scheduling.volcano.sh", "PodGroup", "scheduling.volcano.sh/v1beta1", "podgroups", True, True
)


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def deep(name: str, levels: int = LEVELS) -> str:
    metadata = f'{{"name":"{name}","uid":"{name}","resourceVersion":"7"}}'
    return f'{{"metadata":{metadata},"spec":{{"x":{nested(levels)},"y":"]}}"}}}}'


@pytest.mark.parametrize("levels", [DEPTH, DEPTH + 2, 2 * DEPTH, 100 * DEPTH])
def test_s8_all_that_is_nested_deeper_is_left_out(levels: int) -> None:
    text = f'{{"text":"[[{{\\"","deep":{nested(levels)},"more":[1,{{"b":[]}}]}}'
    found = msgspec.json.decode(shallow(text.encode()))
    assert not is_too_deep(found)
    assert (found["text"], found["more"]) == ('[[{"', [1, {"b": []}])
    assert (found == json.loads(text)) if levels < DEPTH else True


def test_s8_what_is_not_too_deep_is_the_same_object() -> None:
    obj = json.loads(deep("g", DEPTH - 3))
    assert within_depth(obj) is obj


def informer(seen: list[Any]) -> Informer:
    async def find() -> Resource | None:
        return POD_GROUPS

    return Informer(None, POD_GROUPS, seen.append, find)  # type: ignore[arg-type]


@pytest.mark.parametrize("levels", [2 * DEPTH, LEVELS])
def test_s8_an_object_that_is_too_deep_ends_no_list(levels: int) -> None:
    body = f'{{"metadata":{{"resourceVersion":"9"}},"items":[{deep("a", 2)},{deep("b", levels)},{deep("c", 3)}]}}'
    items = read_page(body.encode(), POD_GROUPS).items or []
    assert [item["metadata"]["name"] for item in items] == ["a", "b", "c"]
    assert [item["spec"]["y"] for item in items] == ["]}"] * 3
    assert not is_too_deep(within_depth(items[1]))


@pytest.mark.parametrize("levels", [2 * DEPTH, LEVELS])
def test_s8_an_object_that_is_too_deep_ends_no_watch(levels: int) -> None:
    seen: list[Any] = []
    one = informer(seen)
    for name, depth in (("a", 2), ("b", levels), ("c", 3)):
        one._take(f'{{"type":"ADDED","object":{deep(name, depth)}}}'.encode())
    assert [event.obj["metadata"]["name"] for event in seen] == ["a", "b", "c"]
    assert not is_too_deep(seen[1].obj)


def test_s8_patch_after_patch_makes_no_object_that_is_too_deep() -> None:
    once = json_patch.apply({"a": {}}, [{"op": "add", "path": "/a/a", "value": json.loads(nested(60))}])
    again = [{"op": "add", "path": "/a" * 60, "value": json.loads(nested(60))}]
    with pytest.raises(Refused, match="nested deeper") as refused:
        json_patch.apply(once, again)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    "key",
    [
        "gang.scheduling.koordinator.sh/groups",
        "gang.scheduling.koordinator.sh/network-topology-spec",
        "yunikorn.apache.org/task-groups",
        "kueue.x-k8s.io/podset-slice-required-topology-constraints",
        "enbloc.dev/claim-reserve",
        "enbloc.dev/claim-hold",
        "scheduling.volcano.sh/numa-topology-policy",
    ],
)
def test_s8_json_in_an_annotation_may_be_nested_as_deep_as_it_likes(key: str) -> None:
    """It is a bad value of its own gang, and nothing raises. This ended the process."""
    bad = m.koordinator_gang("bad", 1)
    bad[0]["metadata"]["annotations"][key] = "[" * LEVELS + "]" * LEVELS
    answer = simulate(m.node("n", 4), bad, m.gang("good", 2))
    assert answer.times("good") == [0.0, 0.0]
