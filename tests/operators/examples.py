"""The examples that other projects ship, as they are in the archives of their modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from operators import programs

_EXAMPLES = re.compile(r"(^|/)(samples?|examples?|quickstart|artifacts|demos?|keps?)(/|$)")
_DOCS = {"github.com/NVIDIA/KAI-scheduler": "docs", "sigs.k8s.io/scheduler-plugins": "manifests"}
"""Projects that keep examples elsewhere, too."""
_NOT = re.compile(r"(^|/)(testdata|test|tests|crds?|templates|rbac|ci|\.github|node_modules|tests?-manifests)(/|$)")
_NO_MANIFEST = ("kustomization.yaml", "kustomizeconfig.yaml", "Chart.yaml", "values.yaml", "kep.yaml")


class Example(NamedTuple):
    project: str
    name: str
    """Its path in the archive."""
    path: Path


def examples() -> Iterator[Example]:
    """Every example file, by project and path."""
    for module, version in modules().items():
        root = programs.source(module, version)
        for path in sorted((*root.rglob("*.yaml"), *root.rglob("*.yml"))):
            name = path.relative_to(root).as_posix()
            folder = name.rpartition("/")[0]
            elsewhere = _DOCS.get(module)
            chosen = _EXAMPLES.search(folder) or (elsewhere and name.startswith(f"{elsewhere}/"))
            if chosen and not _NOT.search(folder) and path.name not in _NO_MANIFEST:
                yield Example(module, name, path)


def modules() -> dict[str, str]:
    built = {program.versioned: f"v{programs.version(program.name)}" for program in programs.PROGRAMS}
    return built | programs.SOURCES
