"""`env`: the index of a pod within its role, as environment variables."""

from __future__ import annotations

from enbloc.api.meta import Obj
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.controllers.plugins.pod_patch import PodPatch


class Env:
    def objects(self, plan: JobPlan) -> list[Obj]:
        return []

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        patch.set_env("VK_TASK_INDEX", str(index))
        patch.set_env("VC_TASK_INDEX", str(index))
