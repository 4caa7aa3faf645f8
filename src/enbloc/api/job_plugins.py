"""The job plugins (V3), and which others each of them needs. Used by admission and the job controller."""

from __future__ import annotations

from collections.abc import Iterable

NEEDS: dict[str, tuple[str, ...]] = {
    "env": (),
    "svc": (),
    "ssh": (),
    "pytorch": ("svc",),
    "tensorflow": ("svc",),
    "mpi": ("svc", "ssh"),
    "ray": ("svc",),
}
"""Plugin → the plugins it needs, in the order in which they run."""

WITHOUT_EFFECT = ("hcclrank", "ringsconfigmap")
"""Volcano's plugins that have no counterpart here: they describe devices to a program and keep no pod from a node, so
they are accepted with a Warning (N1)."""


def with_needed(names: Iterable[str]) -> list[str]:
    """The known ones among `names` and all that they need, in the order in which they run."""
    wanted = set(names)
    for name in tuple(wanted):
        wanted.update(NEEDS.get(name, ()))
    return [name for name in NEEDS if name in wanted]
