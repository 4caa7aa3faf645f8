"""`env`: tells each pod its index within its role."""

from __future__ import annotations

from enbloc.api.meta import Obj
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.controllers.plugins.pod_patch import PodPatch


class Env:
    def objects(self, plan: JobPlan) -> list[Obj]:
        return []

    def dress(self, plan: JobPlan, role: Role, index: int, dress: PodPatch) -> None:
        dress.set("VK_TASK_INDEX", str(index))
        dress.set("VC_TASK_INDEX", str(index))
