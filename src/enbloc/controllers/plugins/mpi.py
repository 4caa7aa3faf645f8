"""`mpi`: the hosts of the workers, in the environment of the master; they are reached by ssh."""

from __future__ import annotations

from enbloc.api.meta import Obj
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.controllers.plugins.plugin import Flags, hosts_of
from enbloc.controllers.plugins.pod_patch import PodPatch


class Mpi:
    def __init__(self, flags: Flags) -> None:
        self._master = flags.text("master", "master")
        self._worker = flags.text("worker", "worker")
        self._port = flags.number("port", 22)

    def objects(self, plan: JobPlan) -> list[Obj]:
        return []

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        if role.name == self._master:
            patch.set_env("MPI_HOST", ",".join(hosts_of(plan, plan.role(self._worker))))
        if role.name in (self._master, self._worker):
            patch.port("mpijob-port", self._port)
