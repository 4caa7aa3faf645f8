"""Helm, built from its Go module as the control plane is.

python tests/helm/programs.py        # build it if it is missing, print where it is
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, too

from e2e import binaries
from e2e.binaries import Program

_HELM = "helm.sh/helm/v3"
HELM = Program("helm", "helm", f"{_HELM}/cmd/helm", _HELM, "1 to 10 minutes", Path(__file__).parent / "go")

if __name__ == "__main__":
    sys.exit(binaries.main((HELM,)))
