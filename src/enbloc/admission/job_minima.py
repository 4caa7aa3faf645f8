"""How the minima of a job and of its roles relate (M1): defaults, and sums that do not match.

An annotation records which minima were defaulted, so that they follow the replicas when the job is scaled (M2): in the
spec a default looks like any other number.

Strict is the default. A job's minimum over roles that have none means "any pods", which few authors mean: the gang
would start without its master. `relaxed` accepts what Volcano accepts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from enbloc.api.meta import Fault

THE_JOB = "*"  # no role can be called that


class RoleMinimum(msgspec.Struct, frozen=True):
    """A role as far as M1 reads it; `minimum` is `None` where the user wrote none."""

    name: str
    replicas: int
    minimum: int | None


class Minima(msgspec.Struct, frozen=True):
    """All minima: the job's, the roles' in order, and the names of those that were defaulted."""

    job: int
    roles: tuple[int, ...]
    defaulted: tuple[str, ...]

    @property
    def job_is_defaulted(self) -> bool:
        return THE_JOB in self.defaulted


def written(value: int | None, name: str, before: Mapping[str, int | None], defaulted: frozenset[str]) -> int | None:
    """The minimum that the user wrote: `None` for a default that an update sends back unchanged."""
    return None if name in defaulted and value == before.get(name) else value


def defaulted_minima(job: int | None, roles: Sequence[RoleMinimum], *, relaxed: bool) -> Minima:
    """M1's table of defaults. `sum_faults` and the rest of M2 validate the numbers."""
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
    """Why the job's minimum contradicts those of its roles."""
    if minima.job_is_defaulted or relaxed or minima.job < 0 or minima.job == sum(minima.roles):
        return []
    kind = "minAvailable" if any(role.minimum for role in roles) else "replicas"
    terms = " + ".join(f"{role.name} {minimum}" for role, minimum in zip(roles, minima.roles, strict=True))
    way_out = "give each role its own minAvailable" if kind == "replicas" else "change the roles' minAvailable"
    relax = "--compat volcano (admission.minAvailable: relaxed in the scheduler's config)"
    advice = f"; {way_out}, or take it as Volcano does with {relax}"
    text = f"{minima.job} is not the sum of the roles' {kind}, {sum(minima.roles)} ({terms}){advice}"
    return [Fault(field, text)]
