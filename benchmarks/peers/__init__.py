"""Enbloc and its peers on the same API server. The control plane is the one of the end-to-end tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "tests")]
