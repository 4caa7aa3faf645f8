"""Entry point of admission: an object goes in, the object with its defaults and all its faults come out.

Each kind has its own module; other kinds pass unchanged. The caller (the embedded API, the webhook, lint) refuses the
object if there is any fault.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from enbloc.admission import job, podgroup, queue, queuejob, schedulingspec
from enbloc.admission.definition_checks import definition_faults
from enbloc.admission.lookup import Lookup
from enbloc.admission.pod_template import template_faults
from enbloc.admission.settings import DEFAULTS, Settings, is_foreign
from enbloc.admission.warnings import warnings
from enbloc.api import arbitrator, kai, kubernetes, volcano
from enbloc.api.core import PodSpec
from enbloc.api.kinds import decode_faults, kind_id, view
from enbloc.api.meta import Fault, Obj

__all__ = ["Lookup", "Settings", "admit", "admit_delete", "warnings"]

Operation = Literal["CREATE", "UPDATE"]

REVIEWED: Final = (volcano.JOB, volcano.POD_GROUP, volcano.QUEUE, arbitrator.QUEUE_JOB, arbitrator.SCHEDULING_SPEC)
"""The kinds that are reviewed on create and update; pods are not among them."""
DELETION_REVIEWED: Final = (volcano.QUEUE,)


def admit(
    operation: Operation, obj: Obj, old: Obj | None, lookup: Lookup, settings: Settings = DEFAULTS
) -> tuple[Obj, list[Fault]]:
    """The object after mutation, and every fault in it."""
    before = old if operation == "UPDATE" else None
    if kind_id(obj) in (volcano.JOB, arbitrator.QUEUE_JOB) and is_foreign(before or obj, settings):
        if before is None:  # another scheduler's (N5)
            return obj, decode_faults(obj) or definition_faults(obj)
        if is_foreign(obj, settings):
            return obj, []
    try:
        match kind_id(obj):
            case volcano.JOB:
                return job.admit(obj, before, lookup, settings)
            case volcano.POD_GROUP:
                return podgroup.admit(obj, before, lookup)
            case volcano.QUEUE:
                return queue.admit(obj, before, lookup)
            case arbitrator.SCHEDULING_SPEC:
                return schedulingspec.admit(obj, before, lookup)
            case kubernetes.POD_GROUP:  # a real API server validates this kind itself
                return obj, [*podgroup.native_faults(obj), *podgroup.composite_faults(obj, lookup)]
            case kubernetes.COMPOSITE_POD_GROUP:
                return obj, podgroup.composite_faults(obj, lookup)
            case kai.POD_GROUP:
                return obj, podgroup.kai_faults(obj)
            case "Pod":  # a real API server validates pods itself
                spec = obj["spec"] if operation == "CREATE" else {}
                return obj, template_faults(view(spec, PodSpec), spec, "spec", strict=False) if spec else []
            case arbitrator.QUEUE_JOB:
                return queuejob.admit(obj, before, lookup, settings)
    except msgspec.ValidationError:
        return obj, decode_faults(obj)
    return obj, []


def admit_delete(obj: Obj, lookup: Lookup) -> list[Fault]:
    """Why an object may not be deleted."""
    return queue.delete_faults(obj, lookup) if kind_id(obj) == volcano.QUEUE else []
