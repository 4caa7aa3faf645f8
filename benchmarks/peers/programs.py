"""The peers that are built: real schedulers, from their Go modules, as the control plane of the tests is.

`go/NAME/go.mod` pins each with all that it requires and replaces, so that nothing is resolved here. A module's archive
has what the project ships besides code: its definitions are read there when a benchmark runs, and none is copied.

    python -m benchmarks.peers.programs        # build what is missing, print where it is
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from e2e import binaries
from e2e.binaries import Program

MODULES: Final = Path(__file__).parent / "go"
KUBERNETES: Final = "k8s.io/kubernetes"
YUNIKORN: Final = "github.com/apache/yunikorn-k8shim"
SCHEDULER_PLUGINS: Final = "sigs.k8s.io/scheduler-plugins"
KAI: Final = "github.com/NVIDIA/KAI-scheduler"
KOORDINATOR: Final = "github.com/koordinator-sh/koordinator"

KUBE_SCHEDULER: Final = Program(
    "kube-scheduler", "kubernetes", f"{KUBERNETES}/cmd/kube-scheduler", KUBERNETES, "2 to 5 minutes"
)


def _peer(name: str, module: str, package: str, versioned: str, about: str) -> Program:
    return Program(name, module, f"{versioned}/{package}", versioned, about, MODULES)


PEERS: Final = {
    "yunikorn": (_peer("yunikorn", "yunikorn", "pkg/cmd/shim", YUNIKORN, "2 to 15 minutes"),),
    "scheduler-plugins": (
        _peer("scheduler-plugins", "scheduler-plugins", "cmd/scheduler", SCHEDULER_PLUGINS, "3 to 15 minutes"),
    ),
    "kai": (
        _peer("kai-scheduler", "kai", "cmd/scheduler", KAI, "3 to 15 minutes"),
        _peer("kai-binder", "kai", "cmd/binder", KAI, "a minute after its scheduler"),
    ),
    "koordinator": (_peer("koordinator", "koordinator", "cmd/koord-scheduler", KOORDINATOR, "3 to 15 minutes"),),
}
"""Peer → its programs."""


def programs_of(name: str) -> tuple[Program, ...]:
    """Those of a scheduler, by its name for people."""
    return PEERS.get(name.lower(), (KUBE_SCHEDULER,))


def main() -> int:
    return binaries.main([KUBE_SCHEDULER, *(one for some in PEERS.values() for one in some)])


if __name__ == "__main__":
    sys.exit(main())
