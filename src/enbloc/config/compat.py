"""Presets for users of other gang schedulers: which scheduler names are ours, which rules are relaxed (N5).

A preset sets defaults only: a value that the config file gives wins. `reading` applies them.
"""

from typing import Final, Literal

import msgspec

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""The name that an API server writes into pods that name none."""


class Preset(msgspec.Struct, frozen=True):
    """What manifests of one project rely on."""

    scheduler_names: tuple[str, ...]
    min_available: Literal["strict", "relaxed"] | None = None
    """M1; `None`: as without the preset."""
    actions: str | None = None
    """The project's default actions; `None`: as without the preset."""
    of_jobs: str | None = None
    """The scheduler that the project's webhook writes into jobs that name none; `None`: as without the preset."""


PRESETS: Final = {
    "volcano": Preset(("volcano",), min_available="relaxed", actions="enqueue, allocate, backfill", of_jobs="volcano"),
    "koordinator": Preset(("koord-scheduler",)),
    "scheduler-plugins": Preset(("scheduler-plugins-scheduler",)),
    "kai": Preset(("kai-scheduler",)),
    "yunikorn": Preset(("yunikorn",)),
}

PEER_SCHEDULER_NAMES: Final = (
    *(name for preset in PRESETS.values() for name in preset.scheduler_names),
    DEFAULT_SCHEDULER,
)
"""Ours too where no other scheduler runs, and neither names nor presets are configured (G1)."""


def preset_names(compat: tuple[str, ...]) -> tuple[str, ...]:
    """The scheduler names of these presets."""
    return tuple(name for preset in compat for name in PRESETS[preset].scheduler_names)


def preset_of(scheduler_name: str) -> str | None:
    """The preset that makes a scheduler name ours."""
    return next((name for name, preset in PRESETS.items() if scheduler_name in preset.scheduler_names), None)
