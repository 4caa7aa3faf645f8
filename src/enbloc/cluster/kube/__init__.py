"""A real Kubernetes over HTTP: lists, watches that survive what networks do, and writes with many in flight."""

from enbloc.cluster.kube.cluster import KubeCluster, connect

__all__ = ["KubeCluster", "connect"]
