"""Everything that a cluster is given by `enbloc install`, as objects: definitions, rights, deployments, webhooks.

Nothing in here talks to a cluster. The same settings give the same objects, in the same order.
"""

from enbloc.install.manifests import Settings, manifests

__all__ = ["Settings", "manifests"]
