"""Kubernetes' own kinds that the scheduler does not read: workloads, and kinds that are served as they are.

A kind that is served as it is can be written, read and watched, so that clients and controllers that expect it start;
nothing acts on it here.
"""

from __future__ import annotations

from typing import Final

from enbloc.api import workloads
from enbloc.api.kind import Kind

_V1: Final = ("v1",)
_WORKLOADS: Final = (
    Kind("apps", _V1, "Deployment", "deployments", True, workloads.Deployment, short_names=("deploy",)),
    Kind("apps", _V1, "ReplicaSet", "replicasets", True, workloads.ReplicaSet, short_names=("rs",)),
    Kind("apps", _V1, "StatefulSet", "statefulsets", True, workloads.StatefulSet, short_names=("sts",)),
    Kind("apps", _V1, "DaemonSet", "daemonsets", True, workloads.DaemonSet, short_names=("ds",)),
    Kind(
        "apps", _V1, "ControllerRevision", "controllerrevisions", True, workloads.ControllerRevision, has_status=False
    ),
    Kind("batch", _V1, "Job", "jobs", True, workloads.Job),
    Kind("batch", _V1, "CronJob", "cronjobs", True, workloads.CronJob, short_names=("cj",)),
    Kind("", _V1, "ReplicationController", "replicationcontrollers", True, short_names=("rc",)),
)

_PLAIN: Final = """
rbac.authorization.k8s.io v1 Role roles namespaced
rbac.authorization.k8s.io v1 RoleBinding rolebindings namespaced
rbac.authorization.k8s.io v1 ClusterRole clusterroles cluster
rbac.authorization.k8s.io v1 ClusterRoleBinding clusterrolebindings cluster
admissionregistration.k8s.io v1 ValidatingAdmissionPolicy validatingadmissionpolicies cluster status
admissionregistration.k8s.io v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings cluster
autoscaling v2,v1 HorizontalPodAutoscaler horizontalpodautoscalers namespaced status hpa
resource.k8s.io v1,v1beta2,v1beta1 ResourceClaim resourceclaims namespaced status
resource.k8s.io v1,v1beta2,v1beta1 ResourceClaimTemplate resourceclaimtemplates namespaced
resource.k8s.io v1,v1beta2,v1beta1 DeviceClass deviceclasses cluster
resource.k8s.io v1,v1beta2,v1beta1 ResourceSlice resourceslices cluster
scheduling.k8s.io v1beta1,v1alpha2,v1alpha1 Workload workloads namespaced
networking.k8s.io v1 NetworkPolicy networkpolicies namespaced - netpol
networking.k8s.io v1 Ingress ingresses namespaced status ing
networking.k8s.io v1 IngressClass ingressclasses cluster
discovery.k8s.io v1 EndpointSlice endpointslices namespaced
node.k8s.io v1 RuntimeClass runtimeclasses cluster
storage.k8s.io v1 CSIDriver csidrivers cluster
storage.k8s.io v1 CSINode csinodes cluster
storage.k8s.io v1 CSIStorageCapacity csistoragecapacities namespaced
storage.k8s.io v1 VolumeAttachment volumeattachments cluster status
core v1 Endpoints endpoints namespaced - ep
core v1 LimitRange limitranges namespaced - limits
core v1 PodTemplate podtemplates namespaced
"""
"""Group, versions, kind, plural, scope, `status` if it has that subresource, short name."""


def _plain(line: str) -> Kind:
    group, versions, name, plural, scope, *more = line.split()
    return Kind(
        "" if group == "core" else group,
        tuple(versions.split(",")),
        name,
        plural,
        scope == "namespaced",
        has_status=more[:1] == ["status"],
        short_names=tuple(more[1:]),
    )


BUILT_IN: Final = (*_WORKLOADS, *(_plain(line) for line in _PLAIN.strip().splitlines()))
