"""Where the API server is and who we are to it. Reading kubeconfigs is left to `kubernetes_asyncio`."""

from __future__ import annotations


class NoCredentials(Exception):
    """What a user gave us does not lead to a cluster; the message is one line for them."""
