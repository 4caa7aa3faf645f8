"""The parts of the config that admission depends on."""

from __future__ import annotations

from typing import Final

import msgspec

from enbloc.api.meta import Obj
from enbloc.config import Config, default_scheduler_name, scheduler_names
from enbloc.config.compat import DEFAULT_SCHEDULER, preset_of
from enbloc.config.vocabulary import SCHEDULER_NAMES


class Settings(msgspec.Struct, frozen=True):
    relaxed: bool = False
    """`admission.minAvailable: relaxed` (M1)."""
    scheduler_name: str = SCHEDULER_NAMES[0]
    """The default `schedulerName` of jobs: the first name that is ours (V1)."""
    strict_templates: bool = False
    """Whether `pod_template.omissions` (images, limits of GPUs) are faults, or only warned of as in files."""
    ours: frozenset[str] | None = None
    """The scheduler names that are ours: jobs that name another one are not reviewed (N5). `None`: all are ours."""
    requires_specs: bool = False
    """`arbitrator.requireSchedulingSpec` (A1)."""


DEFAULTS: Final = Settings()


def settings_of(config: Config, *, alone: bool, strict_templates: bool = False) -> Settings:
    """`alone`: no other scheduler runs here (G1)."""
    return Settings(
        config.admission.min_available == "relaxed",
        default_scheduler_name(config),
        strict_templates,
        scheduler_names(config, alone),
        config.arbitrator.require_scheduling_spec,
    )


def is_foreign(job: Obj, settings: Settings) -> bool:
    """Whether a Job or QueueJob names a scheduler that is not ours."""
    spec = job.get("spec")
    name = spec.get("schedulerName") if isinstance(spec, dict) else None
    return settings.ours is not None and isinstance(name, str) and name != "" and name not in settings.ours


def not_ours(name: str, settings: Settings, effect: str = "") -> str:
    """What a scheduler name that is not ours means, and what to do about it, for messages."""
    preset = preset_of(name)
    where = " (kube-scheduler's)" if name == DEFAULT_SCHEDULER else ""
    way_out = f"--compat {preset}" if preset else "add it to schedulerNames in the config"
    return f"is not ours{where}: {f'{effect}; ' if effect else ''}use {settings.scheduler_name}, or {way_out}"
