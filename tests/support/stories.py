"""Scenario files that say in the comment that opens them with which config, and until when, they run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml


def settings_of(path: Path) -> tuple[dict[str, Any] | None, str | None]:
    """The settings of `# config: {...}` and the duration of `# until: 60s`; `None` for what is not said."""
    header = path.read_text().partition("\n\n")[0]
    config = re.search(r"^# config: (.+)$", header, re.MULTILINE)
    until = re.search(r"^# until: (.+)$", header, re.MULTILINE)
    return (yaml.safe_load(config[1]) if config else None), (until[1] if until else None)
