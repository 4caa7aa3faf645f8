"""Where the real traces are: beside the project, or where `ENBLOC_TRACES` says. They are not part of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TRACES = Path(os.environ.get("ENBLOC_TRACES") or Path(__file__).parents[2].parent / "shared" / "traces")
needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not on this machine")
