"""scheduler-plugins' dialect: a PodGroup of `scheduling.x-k8s.io`, and pods that name it by label (K1).

It has the same fields as Koordinator's PodGroup and may carry the same annotations, so `koordinator` reads both, in one
name space. This module tells the two apart.
"""

from __future__ import annotations

from enbloc.api.coscheduling import POD_GROUP
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj

NAME = "coscheduling"


def is_coscheduling(group: Obj) -> bool:
    """Whether a PodGroup is scheduler-plugins'."""
    return kind_id(group) == POD_GROUP
