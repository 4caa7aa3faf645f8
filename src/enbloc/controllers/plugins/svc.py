"""`svc`: stable host names: a headless Service, and the hosts of every role in a ConfigMap and the environment."""

from __future__ import annotations

from typing import Any, Final

from enbloc.api import volcano
from enbloc.api.meta import Obj
from enbloc.controllers.job_roles import JobPlan, Role
from enbloc.controllers.plugins.plugin import Flags, env_name, hosts_of, owned
from enbloc.controllers.plugins.pod_patch import PodPatch

HOSTS_PATH: Final = "/etc/volcano"


def config_map_name(plan: JobPlan) -> str:
    return f"{plan.name}-svc"


def hosts_data(plan: JobPlan) -> dict[str, str]:
    """The hosts of every role, one a line for a hosts file and with commas for the environment."""
    data: dict[str, str] = {}
    for role in plan.roles:
        hosts = hosts_of(plan, role)
        data[f"{role.name}.host"] = "\n".join(hosts)
        data[f"VC_{env_name(role.name)}_HOSTS"] = ",".join(hosts)
        data[f"VC_{env_name(role.name)}_NUM"] = str(len(hosts))
    return data


class Svc:
    def __init__(self, flags: Flags) -> None:
        self._publish_not_ready = flags.on("publish-not-ready-addresses")
        self._network_policy = not flags.on("disable-network-policy")

    def objects(self, plan: JobPlan) -> list[Obj]:
        pods = {volcano.JOB_NAME: plan.name, volcano.JOB_NAMESPACE: plan.namespace}
        service: dict[str, Any] = {
            "clusterIP": "None",
            "selector": pods,
            "ports": [{"name": "placeholder-volcano", "port": 1, "protocol": "TCP", "targetPort": 1}],
        }
        if self._publish_not_ready:
            service["publishNotReadyAddresses"] = True
        made = [
            owned(plan, "v1", "ConfigMap", config_map_name(plan), data=hosts_data(plan)),
            owned(plan, "v1", "Service", plan.name, spec=service),
        ]
        if self._network_policy:
            policy = {
                "podSelector": {"matchLabels": pods},
                "ingress": [{"from": [{"podSelector": {"matchLabels": pods}}]}],
                "policyTypes": ["Ingress"],
            }
            made.append(owned(plan, "networking.k8s.io/v1", "NetworkPolicy", plan.name, spec=policy))
        return made

    def patch_pod(self, plan: JobPlan, role: Role, index: int, patch: PodPatch) -> None:
        patch.fields["hostname"] = f"{plan.name}-{role.name}-{index}"
        patch.fields["subdomain"] = plan.name
        name = config_map_name(plan)
        for other in plan.roles:
            patch.set_env_from(f"VC_{env_name(other.name)}_HOSTS", name)
            patch.set_env_from(f"VC_{env_name(other.name)}_NUM", name)
        items = [{"key": f"{other.name}.host", "path": f"{other.name}.host"} for other in plan.roles]
        patch.volume({"name": name, "configMap": {"name": name, "items": items}}, HOSTS_PATH)
