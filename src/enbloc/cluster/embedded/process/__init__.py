"""Nodes whose pods are processes of this machine: `enbloc up --runtime process`."""

from enbloc.cluster.embedded.process.capacity import local_node
from enbloc.cluster.embedded.process.nodes import ProcessNodes

__all__ = ["ProcessNodes", "local_node"]
