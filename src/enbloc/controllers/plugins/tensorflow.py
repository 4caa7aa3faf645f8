"""`tensorflow`: TF_CONFIG, which names every host of the cluster and this pod's place in it."""

from __future__ import annotations

import msgspec

from enbloc.api.meta import Obj
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.controllers.plugins.plugin import Flags, hosts_of
from enbloc.controllers.plugins.pod_patch import PodPatch


class Tensorflow:
    def __init__(self, flags: Flags) -> None:
        self._role_of = {part: flags.text(part, part) for part in ("ps", "worker", "chief", "evaluator")}
        self._port = flags.number("port", 2222)

    def objects(self, plan: JobPlan) -> list[Obj]:
        return []

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        part = next((part for part, name in self._role_of.items() if name == role.name), None)
        if part is None:
            return
        cluster = {
            part: [f"{host}:{self._port}" for host in hosts]
            for part, name in self._role_of.items()
            if (hosts := hosts_of(plan, plan.role(name)))
        }
        config = {"cluster": cluster, "task": {"type": part, "index": index}}
        patch.set_env("TF_CONFIG", msgspec.json.encode(config).decode())
        patch.port("tfjob-port", self._port)
