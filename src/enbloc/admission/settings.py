"""The parts of the config that admission depends on."""

from __future__ import annotations

from typing import Final

import msgspec

from enbloc.config import Config, default_scheduler_name
from enbloc.config.vocabulary import SCHEDULER_NAMES


class Settings(msgspec.Struct, frozen=True):
    relaxed: bool = False
    """`admission.minAvailable: relaxed` (M1)."""
    scheduler_name: str = SCHEDULER_NAMES[0]
    """The default `schedulerName` of jobs: the first name that is ours (V1)."""
    strict_templates: bool = False
    """Whether `pod_template.omissions` (images, limits of GPUs) are faults, or only warned of as in files."""


DEFAULTS: Final = Settings()


def settings_of(config: Config, *, strict_templates: bool = False) -> Settings:
    return Settings(config.admission.min_available == "relaxed", default_scheduler_name(config), strict_templates)
