"""`pytorch`: the environment of torch.distributed: where the master is, how many there are, which one this is."""

from __future__ import annotations

from enbloc.api.meta import Obj
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.controllers.plugins.plugin import Flags, host_of
from enbloc.controllers.plugins.pod_patch import PodPatch


class Pytorch:
    def __init__(self, flags: Flags) -> None:
        self._master = flags.text("master", "master")
        self._worker = flags.text("worker", "worker")
        self._port = flags.number("port", 23456)

    def objects(self, plan: JobPlan) -> list[Obj]:
        return []

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        if role.name not in (self._master, self._worker):
            return
        master, worker = plan.role(self._master), plan.role(self._worker)
        masters = master.replicas if master else 0
        first = master or worker
        if first is None:
            return
        patch.set_env("MASTER_ADDR", host_of(plan, first, 0))
        patch.set_env("MASTER_PORT", str(self._port))
        patch.set_env("WORLD_SIZE", str(masters + (worker.replicas if worker else 0)))
        patch.set_env("RANK", str(index if role.name == self._master else masters + index))
        patch.port("pytorchjob-port", self._port)
