"""Jobs of one pod each in queues, and how many pods of each queue were bound."""

from __future__ import annotations

from collections import Counter
from typing import Any

from enbloc.api.meta import Obj
from support import manifests as m
from support.answers import Answer


def jobs(queue_name: str, count: int, cpu: int = 1, **more: Any) -> list[Obj]:
    """Jobs of one pod each, named after their queue."""
    return [m.one_pod_job(f"{queue_name}-{index:02}", cpu=cpu, queue=queue_name, **more) for index in range(count)]


def taken(answer: Answer, until: float = 1e9) -> Counter[str]:
    """How many pods of each queue were bound by then, by the first part of their names."""
    return Counter(name.partition("-")[0] for name in answer.first_bound(by=until))
