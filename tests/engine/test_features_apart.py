"""The core names no feature; each feature is asked at some point, and each point has a feature that uses it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import enbloc.engine.features.catalogue  # noqa: F401  all features are known
from enbloc.engine.core.claims.claims import ClaimPolicy
from enbloc.engine.core.feature import POINTS, Feature, Features
from enbloc.gangs.claim_records import ClaimKind

ENGINE = Path(__file__).parents[2] / "src" / "enbloc" / "engine"
CORE = sorted((ENGINE / "core").rglob("*.py"))


def kinds(of: type[Feature] = Feature) -> Iterator[type[Feature]]:
    for kind in of.__subclasses__():
        yield kind
        yield from kinds(kind)


def uses(kind: type[Feature]) -> list[str]:
    return [point for point in POINTS if getattr(kind, point) is not getattr(Feature, point)]


FEATURES = [kind for kind in dict.fromkeys(kinds()) if kind.__module__.startswith("enbloc.") and kind is not Features]


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ENGINE)))
def test_the_core_names_no_kind_of_claim_and_looks_up_no_feature(path: Path) -> None:
    named = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ClaimKind":
            named.add(f"ClaimKind.{node.attr}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("find", "get"):
            of = node.func.value
            if isinstance(of, ast.Attribute | ast.Name) and (getattr(of, "attr", "") or getattr(of, "id", "")) in (
                "features",
                "_features",
            ):
                named.add(ast.unparse(node))
    assert named == set()


@pytest.mark.parametrize("kind", FEATURES, ids=lambda kind: kind.__name__)
def test_each_feature_uses_a_point(kind: type[Feature]) -> None:
    assert uses(kind) or kind.__subclasses__() or issubclass(kind, ClaimPolicy)


@pytest.mark.parametrize("point", POINTS)
def test_each_point_has_a_feature_that_uses_it(point: str) -> None:
    assert [kind.__name__ for kind in FEATURES if point in uses(kind)]


def test_each_kind_of_claim_has_one_policy() -> None:
    policies = [kind.kind for kind in FEATURES if issubclass(kind, ClaimPolicy) and "kind" in vars(kind)]
    assert sorted(policies) == sorted(ClaimKind)
