"""N2: our definitions have every field of the peers' tagged releases, compared with the archives of those releases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from enbloc.api.meta import Obj
from enbloc.install.definitions import DEFINED, definitions
from enbloc.install.merging import field_paths, merge
from operators import programs

_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r'^\s+(\w+)?\s*([\[\]*\w.]+)\s+`[^`]*json:"([^",]*)', re.MULTILINE)

VOLCANO = "volcano.sh/apis"
GO_TYPES = (
    ("Job.batch.volcano.sh", "pkg/apis/batch/v1alpha1/job.go", "Job"),
    ("PodGroup.scheduling.volcano.sh", "pkg/apis/scheduling/v1beta1/types.go", "PodGroup"),
    ("Queue.scheduling.volcano.sh", "pkg/apis/scheduling/v1beta1/types.go", "Queue"),
    ("Command.bus.volcano.sh", "pkg/apis/bus/v1alpha1/commands.go", "Command"),
)
SCHEMAS = (
    (
        "PodGroup.scheduling.sigs.k8s.io",
        "github.com/koordinator-sh/koordinator",
        "config/crd/bases/scheduling.sigs.k8s.io_podgroups.yaml",
    ),
    (
        "PodGroup.scheduling.x-k8s.io",
        "sigs.k8s.io/scheduler-plugins",
        "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
    ),
    (
        "PodGroup.scheduling.run.ai",
        "github.com/NVIDIA/KAI-scheduler",
        "deployments/kai-scheduler/crds/scheduling.run.ai_podgroups.yaml",
    ),
)


def ours(kind: str) -> Obj:
    return dict(zip(DEFINED, definitions({}), strict=True))[kind]


def paths(definition: Obj) -> set[str]:
    return {path.partition(":")[2] for path in field_paths(definition)}


def go_paths(text: str, root: str) -> Iterator[str]:
    """The field paths of a Go type, through the types of the same file."""
    structs = dict(_STRUCT.findall(text))

    def walk(name: str, path: str, above: tuple[str, ...]) -> Iterator[str]:
        for _, kind, field in _FIELD.findall(structs[name]):
            if not field or field == "metadata":
                continue
            bare = kind.lstrip("*[]")
            where = f"{path}.{field}" if path else field
            yield where
            inside = f"{where}[]" if kind.startswith("[]") else where
            if bare in structs and bare not in above:
                yield from walk(bare, inside, (*above, bare))

    return walk(root, "", (root,))


@pytest.mark.parametrize(("kind", "file", "root"), GO_TYPES, ids=[one[0] for one in GO_TYPES])
def test_n2_volcano_s_types_are_in_our_schema(kind: str, file: str, root: str) -> None:
    text = (programs.source(VOLCANO, programs.SOURCES[VOLCANO]) / file).read_text()
    theirs = set(go_paths(text, root))
    assert theirs
    known = paths(ours(kind))
    assert sorted(path for path in theirs if not _within(path, known, ours(kind))) == []


@pytest.mark.parametrize(("kind", "module", "file"), SCHEMAS, ids=[one[0] for one in SCHEMAS])
def test_n2_a_peer_s_definition_is_in_our_schema(kind: str, module: str, file: str) -> None:
    theirs = _definition(programs.source(module, programs.SOURCES[module]) / file)
    known = paths(ours(kind))
    missing = {path for path in paths(theirs) if not _within(path, known, ours(kind))}
    assert sorted(missing - {"apiVersion", "kind"}) == []


def test_v1_volcano_s_own_definition_is_merged_and_not_narrowed() -> None:
    """The definition that LeaderWorkerSet ships for its tests is Volcano's."""
    theirs = _definition(programs.archive("lws") / "test/integration/crd/volcano-podgroup.yaml")
    found = merge(ours("PodGroup.scheduling.volcano.sh"), theirs).definition
    assert paths(theirs) <= paths(found)


def _definition(path: Path) -> Obj:
    found: Any = yaml.load(path.read_text(), yaml.CSafeLoader)
    return dict(found)


def _within(path: str, known: set[str], definition: Obj) -> bool:
    """Whether it is a field of ours, or below one that keeps whatever it is given."""
    if path in known:
        return True
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for part in path.replace("[]", ".[]").split("."):
        if schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
            return True
        schema = schema.get("items", {}) if part == "[]" else schema.get("properties", {}).get(part, {})
        if not schema:
            return False
    return True
