"""YuniKorn's keys on pods: the application, its queue, and its task groups. There is no object beside the pods."""

from __future__ import annotations

from typing import Final

from enbloc.api.meta import Obj, annotations_of, labels_of

PREFIX: Final = "yunikorn.apache.org/"
APP_ID: Final = PREFIX + "app-id"
APP_ID_LABELS: Final = ("applicationId", "spark-app-selector")
"""Labels that name the application where `APP_ID` does not."""
QUEUE: Final = PREFIX + "queue"
QUEUE_LABEL: Final = "queue"
"""Names the queue where `QUEUE` does not, on pods of an application."""
TASK_GROUP_NAME: Final = PREFIX + "task-group-name"
TASK_GROUPS: Final = PREFIX + "task-groups"


def application_of(pod: Obj) -> str:
    """The application that a pod belongs to; one for all pods of a namespace that name none."""
    annotations, labels = annotations_of(pod), labels_of(pod)
    named = labels.get(APP_ID) or annotations.get(APP_ID) or next(filter(None, map(labels.get, APP_ID_LABELS)), "")
    return named or f"yunikorn-{pod['metadata'].get('namespace') or 'default'}-autogen"


def queue_of(obj: Obj) -> str:
    """The queue that an object names, as the name of a Queue: `root.teams.ml` is `teams.ml`. Empty if it names none."""
    annotations, labels = annotations_of(obj), labels_of(obj)
    path = labels.get(QUEUE) or annotations.get(QUEUE) or ""
    if not path and labels.get(APP_ID_LABELS[0]):
        path = labels.get(QUEUE_LABEL) or ""
    return path.lower().removeprefix("root.")
