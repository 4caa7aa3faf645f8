"""`ray`: a head that listens, workers that join it, and a Service in front of the head.

A container that brings a command of its own keeps it; it then finds the head in RAY_ADDRESS.
"""

from __future__ import annotations

from enbloc.api import volcano
from enbloc.api.meta import Obj
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.controllers.plugins.plugin import Flags, host_of, owned
from enbloc.controllers.plugins.pod_patch import PodPatch


class Ray:
    def __init__(self, flags: Flags) -> None:
        self._head = flags.text("head", "head")
        self._worker = flags.text("worker", "worker")
        self._ports = {
            "gcs": flags.number("port", 6379),
            "dashboard": flags.number("dashboardPort", 8265),
            "client": flags.number("clientPort", 10001),
        }

    def objects(self, plan: JobPlan) -> list[Obj]:
        head = {volcano.JOB_NAME: plan.name, volcano.JOB_NAMESPACE: plan.namespace, volcano.TASK_SPEC: self._head}
        ports = [
            {"name": name, "port": number, "protocol": "TCP", "targetPort": number}
            for name, number in self._ports.items()
        ]
        return [owned(plan, "v1", "Service", f"{plan.name}-head-svc", spec={"selector": head, "ports": ports})]

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        head = plan.role(self._head)
        if head is None or role.name not in (self._head, self._worker):
            return
        address = f"{host_of(plan, head, 0)}:{self._ports['gcs']}"
        patch.set_env("RAY_ADDRESS", address)
        if role.name == self._head:
            for name, number in self._ports.items():
                patch.port(name, number)
            start = (
                f"ray start --head --block --dashboard-host=0.0.0.0 --port={self._ports['gcs']} "
                f"--dashboard-port={self._ports['dashboard']} --ray-client-server-port={self._ports['client']}"
            )
        else:
            start = f"ray start --block --address={address}"
        patch.command = ["sh", "-c", start]
