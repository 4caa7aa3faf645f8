"""The names that a config file may use: actions, plugins, extension points, and the meaning of each.

Every name that Volcano ships is known, so that its files work. A name has an effect, or is accepted because the engine
does that in any case, or because it has no counterpart; the notes say which, and are the comments of the printed
config. They are in `vocabulary.txt`. This module knows names only; values are read by `reading`.
"""

from pathlib import Path
from typing import Final

import msgspec

ENTRY_POINTS: Final = "enbloc.plugins"
"""The entry point group in which other packages offer plugins."""

SCHEDULER_NAMES: Final = ("enbloc", "kar-scheduler")

CONFIG_MAP: Final = "enbloc-config"
CONFIG_FILE: Final = "enbloc.yaml"
"""Where `enbloc install` puts the config: this file of this ConfigMap."""


def _sections() -> dict[str, dict[str, str]]:
    """By section of `vocabulary.txt` the names in their order, each with what is said of it."""
    found: dict[str, dict[str, str]] = {}
    named: dict[str, str] = {}
    for line in Path(__file__).with_name("vocabulary.txt").read_text().splitlines():
        if line.startswith("["):
            named = found[line.strip("[]")] = {}
        elif line and not line.startswith("#"):
            name, _, said = line.partition(" ")
            named[name] = said.strip()
    return found


_SECTIONS: Final = _sections()

ACTIONS: Final = _SECTIONS["actions"]
"""Every action, in the order in which they run by default."""

ACTION_ALIASES: Final = {"gangpreempt": "preempt", "gangreclaim": "reclaim"}

IGNORED_ACTION_ARGUMENTS: Final = frozenset({"predicateErrorCacheEnable", "enablePredicateErrorCache"})
"""Volcano's tuning that any action may have; without effect, since predicate errors are always cached."""


NO_EFFECT: Final = "accepted, has no effect"


class PluginNote(msgspec.Struct, frozen=True, gc=False):
    """What naming a plugin does.

    `built_in`: the engine does it whether the plugin is listed or not; a flag may still switch a point off.
    """

    text: str
    built_in: bool


def _note(said: str) -> PluginNote:
    how, _, text = said.partition(" ")
    return PluginNote(text.strip(), built_in=how == "own")


PLUGINS: Final = {name: _note(said) for name, said in _SECTIONS["plugins"].items()}

DEFAULT_TIERS: Final = (
    ("priority", "gang", "conformance"),
    ("overcommit", "drf", "predicates", "proportion", "nodeorder"),
)

POINTS: Final = frozenset(_SECTIONS["points"])
"""Extension points that a flag of a plugin can switch off: `nodeOrder` by `enableNodeOrder: false`."""


def flag_of(point: str) -> str:
    """The usual spelling of the flag for a point."""
    return f"enable{point[0].upper()}{point[1:]}"


def point_of(flag: str) -> str | None:
    """The point that a flag is for; Volcano spells some flags enable…, some enabled…, one Enabled…."""
    for prefix in ("enabled", "Enabled", "enable", "Enable"):
        rest = flag.removeprefix(prefix)
        if rest != flag and rest[:1].isupper():
            point = rest[0].lower() + rest[1:]
            return point if point in POINTS else None
    return None


NODEORDER_WEIGHTS: Final = {
    "leastrequested.weight": ("least", 1, "prefers empty nodes"),
    "mostrequested.weight": ("most", 0, "prefers full nodes"),
    "balancedresource.weight": ("balanced", 1, "prefers nodes whose resources are used evenly"),
    "nodeaffinity.weight": ("node_affinity", 2, "preferred node affinity"),
    "podaffinity.weight": ("pod_affinity", 2, "preferred pod affinity and anti-affinity"),
    "tainttoleration.weight": ("taint_toleration", 3, "avoids nodes with taints that only prefer"),
    "podtopologyspread.weight": ("spread", 2, "topology spread that may be broken"),
}
"""Argument of `nodeorder` -> field of `Scoring`, its default, what it does."""

NODEORDER_IGNORED: Final = frozenset({"imagelocality.weight", "selectorspread.weight", "volumebinding.weight"})

ARGUMENT_NOTES: Final = {
    **_SECTIONS["arguments"],
    **{key: note for key, (_, _, note) in NODEORDER_WEIGHTS.items()},
    **dict.fromkeys(NODEORDER_IGNORED | IGNORED_ACTION_ARGUMENTS, NO_EFFECT),
}
"""What arguments of actions and plugins do, by name or by `OWNER.NAME`."""
