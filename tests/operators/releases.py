"""The releases of Kubernetes that operators are walked on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from e2e import binaries
from e2e.binaries import Program
from e2e.control_plane import APIS, FEATURES
from operators.programs import NEXT_API_SERVER


class Release(NamedTuple):
    api_server: Program
    features: tuple[str, ...]
    apis: tuple[str, ...]
    block: str
    """The mark of its table in docs/operators.md."""

    @property
    def version(self) -> str:
        return binaries.version(self.api_server)

    def programs(self) -> dict[str, Path]:
        """All of a control plane; built if they are not there. Raises `Unavailable`."""
        return binaries.ensure() | binaries.ensure([self.api_server])


PRESENT = Release(binaries.PROGRAMS[0], FEATURES, APIS, "kube-apiserver")
NEXT = Release(NEXT_API_SERVER, ("GenericWorkload=true",), ("scheduling.k8s.io/v1beta1=true",), "kube-apiserver-next")

# It takes long to build.
RELEASES = (PRESENT, NEXT) if os.environ.get("ENBLOC_OPERATORS") == "all" else (PRESENT,)
