"""Pods that run, with an expected end."""

from __future__ import annotations

from typing import Any

from enbloc.gangs.hints import RUN_TIME
from enbloc.units import format_timestamp
from engine.claims.scenes import SECOND_NS
from support import manifests as m


def running(
    name: str,
    cpu: int,
    node: str,
    run_s: int | None = None,
    since_s: int | None = 0,
    leaves: bool = False,
    **fields: Any,
) -> m.Obj:
    """A pod that runs on a node, with an expected run time."""
    annotations = {RUN_TIME: f"{run_s}s"} if run_s is not None else {}
    made = m.pod(name, cpu, nodeName=node, annotations=annotations, **fields)
    made["status"] = {"startTime": format_timestamp(since_s * SECOND_NS)} if since_s is not None else {}
    if leaves:
        made["metadata"]["deletionTimestamp"] = format_timestamp(0)
    return made
