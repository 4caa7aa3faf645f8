"""The `volumes` of a Job: the PersistentVolumeClaims that are created with it, and their mounts in its pods (V3)."""

from __future__ import annotations

from enbloc.api.meta import Obj, owned_metadata
from enbloc.controllers.job_plugin import PodPatch
from enbloc.controllers.job_roles import JobPlan


def claim_name(plan: JobPlan, position: int) -> str:
    """The name of the claim of one volume: the user's, or one that is created with the job."""
    return (plan.spec.volumes or [])[position].volume_claim_name or f"{plan.name}-volume-{position}"


def new_claims(plan: JobPlan) -> list[Obj]:
    """The claims that are created with the job."""
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": owned_metadata(plan.obj, claim_name(plan, position)),
            "spec": volume.volume_claim,
        }
        for position, volume in enumerate(plan.spec.volumes or ())
        if volume.volume_claim is not None
    ]


def add_volumes(plan: JobPlan, patch: PodPatch) -> None:
    for position, volume in enumerate(plan.spec.volumes or ()):
        name = claim_name(plan, position)
        label = f"job-volume-{position}"
        patch.volume({"name": label, "persistentVolumeClaim": {"claimName": name}}, volume.mount_path)
