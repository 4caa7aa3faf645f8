"""scheduler-plugins' PodGroup under its own name. Its fields are Koordinator's, so that view reads it."""

from __future__ import annotations

GROUP = "scheduling.x-k8s.io"
POD_GROUP = f"PodGroup.{GROUP}"

POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
"""On a pod: the name of its PodGroup."""
