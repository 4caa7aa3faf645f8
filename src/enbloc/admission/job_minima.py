"""How the minima of a job and of its roles relate (M1): what is filled in, and what does not add up.

A minimum that was filled in is remembered in an annotation, so that it follows its replicas when the job is scaled
later (M2). On the wire a filled-in minimum looks like any other: without the note nobody could tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from enbloc.api.meta import Fault

DEFAULTED_MINIMA = "enbloc.dev/defaulted-minima"
THE_JOB = "*"  # no role can be called that


class RoleMinimum(msgspec.Struct, frozen=True):
    """A role as M1 sees it; `minimum` is `None` where the user wrote none."""

    name: str
    replicas: int
    minimum: int | None


class Minima(msgspec.Struct, frozen=True):
    """All minima written out: the job's, the roles' in order, and which of them (by name) the user did not write."""

    job: int
    roles: tuple[int, ...]
    defaulted: tuple[str, ...]

    @property
    def job_is_defaulted(self) -> bool:
        return THE_JOB in self.defaulted


def written(value: int | None, name: str, before: Mapping[str, int | None], defaulted: frozenset[str]) -> int | None:
    """What the user wrote: not a minimum that we filled in earlier and that came back unchanged with an update."""
    return None if name in defaulted and value == before.get(name) else value


def fill_in(job: int | None, roles: Sequence[RoleMinimum], *, relaxed: bool) -> Minima:
    """M1's table. Fills in what it can; whether the numbers are right is asked by `sum_faults` and the rest of M2."""
    total_replicas = sum(role.replicas for role in roles)
    some_role_sets = any(role.minimum for role in roles)
    unwritten = tuple(role.name for role in roles if role.minimum is None or not some_role_sets)
    if not job:
        filled = tuple(_or_replicas(role, some_role_sets) for role in roles)
        return Minima(sum(filled), filled, (*unwritten, THE_JOB))
    if not some_role_sets and len(roles) == 1:
        return Minima(job, (job,), unwritten)
    if relaxed and job != total_replicas:
        own = tuple(role.minimum or 0 for role in roles)
        return Minima(max(job, sum(own)) if job > 0 else job, own, unwritten)
    return Minima(job, tuple(_or_replicas(role, some_role_sets) for role in roles), unwritten)


def _or_replicas(role: RoleMinimum, some_role_sets: bool) -> int:
    """An explicit 0 makes a role optional only where another role sets a minimum."""
    return role.replicas if role.minimum is None or not some_role_sets else role.minimum


def sum_faults(minima: Minima, roles: Sequence[RoleMinimum], field: str, *, relaxed: bool) -> list[Fault]:
    """Why the job's minimum does not go with those of its roles."""
    if minima.job_is_defaulted or relaxed or minima.job < 0 or minima.job == sum(minima.roles):
        return []
    kind = "minAvailable" if any(role.minimum for role in roles) else "replicas"
    terms = " + ".join(f"{role.name} {minimum}" for role, minimum in zip(roles, minima.roles, strict=True))
    advice = "" if kind == "minAvailable" else "; give each role its own minAvailable instead"
    text = f"{minima.job} is not the sum of the roles' {kind}, {sum(minima.roles)} ({terms}){advice}"
    return [Fault(field, text)]
