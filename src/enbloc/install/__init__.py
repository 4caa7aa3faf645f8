"""The objects that `enbloc install` prints: definitions, roles, deployments, webhooks.

Nothing here talks to a cluster. The same settings give the same objects, in the same order.
"""

from enbloc.install.manifests import Settings, manifests, merged_definitions

__all__ = ["Settings", "manifests", "merged_definitions"]
