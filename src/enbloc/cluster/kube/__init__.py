"""A real Kubernetes over HTTP: lists, watches that survive network failures, and concurrent writes."""

from enbloc.cluster.kube.cluster import KubeCluster, connect

__all__ = ["KubeCluster", "connect"]
