"""The `volumes` of a job: claims that are made with it, and how its pods see them (V3)."""

from __future__ import annotations

from enbloc.api.meta import Obj, controller_reference
from enbloc.controllers.job_roles import JobPlan
from enbloc.controllers.plugins.pod_patch import PodPatch


def claim_name(plan: JobPlan, position: int) -> str:
    """The claim behind one volume: the user's own, or ours."""
    return (plan.spec.volumes or [])[position].volume_claim_name or f"{plan.name}-volume-{position}"


def new_claims(plan: JobPlan) -> list[Obj]:
    """The claims that the job brings with it."""
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": claim_name(plan, position),
                "namespace": plan.namespace,
                "ownerReferences": [controller_reference(plan.obj)],
            },
            "spec": volume.volume_claim,
        }
        for position, volume in enumerate(plan.spec.volumes or ())
        if volume.volume_claim is not None
    ]


def volume_additions(plan: JobPlan, dress: PodPatch) -> None:
    for position, volume in enumerate(plan.spec.volumes or ()):
        name = claim_name(plan, position)
        label = f"job-volume-{position}"
        dress.volume({"name": label, "persistentVolumeClaim": {"claimName": name}}, volume.mount_path)
