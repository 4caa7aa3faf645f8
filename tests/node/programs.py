"""What a real node runs, built from the Kubernetes module at the control plane's version.

They have a module of their own, so that those who only run `make e2e` need not build a control plane anew.

    python tests/node/programs.py        # build what is missing, print where it is
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, too

from e2e import binaries
from e2e.binaries import Program
from helm.programs import HELM

_KUBERNETES = "k8s.io/kubernetes"
_MODULES = Path(__file__).parent / "go"
KUBELET = Program("kubelet", "kubelet", f"{_KUBERNETES}/cmd/kubelet", _KUBERNETES, "3 to 15 minutes", _MODULES)
KUBE_PROXY = Program("kube-proxy", "kubelet", f"{_KUBERNETES}/cmd/kube-proxy", _KUBERNETES, "a minute", _MODULES)
KUBE_SCHEDULER = Program(
    "kube-scheduler", "kubernetes", f"{_KUBERNETES}/cmd/kube-scheduler", _KUBERNETES, "1 to 3 minutes"
)
"""It schedules the pods of Enbloc itself, as on any cluster; of the control plane's module, which has all it needs."""
PROGRAMS = (*binaries.PROGRAMS, KUBE_SCHEDULER, KUBELET, KUBE_PROXY, HELM)

if __name__ == "__main__":
    sys.exit(binaries.main(PROGRAMS))
