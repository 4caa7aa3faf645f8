"""Keeps the certificates in a Secret that all replicas share, and the CA bundle in the webhook configurations.

Replicas do not talk to each other: the first to write the Secret wins, the others use what it holds. `certificates`
decides what to do; this module does it.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from typing import Any, Final, Protocol

from enbloc.api.kinds import KINDS
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Create, Patch, Refused, Write
from enbloc.webhook import certificates
from enbloc.webhook.certificates import Content

SECRET: Final = "Secret"
MUTATING: Final = "MutatingWebhookConfiguration.admissionregistration.k8s.io"
VALIDATING: Final = "ValidatingWebhookConfiguration.admissionregistration.k8s.io"
ATTEMPTS: Final = 5

log = logging.getLogger("enbloc.webhook")


class Api(Protocol):
    """What the webhook needs of a cluster."""

    async def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        """One object as it is now, or `None`. Raises `Refused` if the API does not answer."""
        ...

    async def execute(self, write: Write) -> Obj | None:
        """Executes one write. Raises `Refused`."""
        ...


class CertificateRotation:
    """The certificates of one webhook: `secret` in `namespace`, for a server with these DNS `names`."""

    def __init__(self, api: Api, namespace: str, secret: str, names: Sequence[str], configuration: str) -> None:
        self._api = api
        self._ref = Ref(SECRET, namespace, secret)
        self._names = names
        self._configurations = [Ref(kind, "", configuration) for kind in (MUTATING, VALIDATING)]

    async def renew(self, now_ns: int) -> Content:
        """The certificates to serve with, renewed if they are due. API servers trust them when this returns.

        Raises `Refused` if the API refuses a write; the next call completes what is half done."""
        content = await self._content(now_ns)
        for ref in self._configurations:
            await self._trust(ref, certificates.bundle_pem(content))
        return content

    async def _content(self, now_ns: int) -> Content:
        for _ in range(ATTEMPTS):
            secret = await self._api.get(*self._ref)
            content = certificates.read((secret or {}).get("data") or {})
            work = certificates.due(content, self._names, now_ns)
            if work.is_nothing(content):
                return content
            content = certificates.renewed(content, work, self._names, now_ns)
            try:
                await self._api.execute(self._written(secret, content))
            except Refused as why:
                if why.code == 404 and secret is None:
                    what = f"namespace {self._ref.namespace!r} does not exist: apply the output of `enbloc install`"
                    raise Refused(404, "NotFound", what) from why
                if why.code in (404, 409):
                    continue  # it was deleted, or another replica wrote it first: read it again
                raise
            if work.new_authority or work.new_serving:
                what = "authority and certificate" if work.new_authority and work.new_serving else "certificate"
                log.info("webhook: created a new %s", "authority" if not work.new_serving else what)
            return content
        raise Refused(409, "Conflict", f"{self._ref} was changed by others {ATTEMPTS} times in a row")

    def _written(self, secret: Obj | None, content: Content) -> Write:
        data = certificates.secret_data(content)
        if secret is None:
            metadata = {"name": self._ref.name, "namespace": self._ref.namespace}
            return Create({"apiVersion": "v1", "kind": SECRET, "metadata": metadata, "type": "Opaque", "data": data})
        version = secret["metadata"].get("resourceVersion") or ""
        return Patch(self._ref, {"data": data}, resource_version=version)

    async def _trust(self, ref: Ref, bundle: bytes) -> None:
        """Writes the bundle into a webhook configuration that has another one."""
        wanted = base64.b64encode(bundle).decode()
        for _ in range(ATTEMPTS):
            found = await self._api.get(*ref)
            if found is None:
                log.warning("webhook: %s does not exist: the API server will not call this webhook", ref)
                return
            patched = [_trusting(hook, wanted) for hook in found.get("webhooks") or ()]
            if patched == found.get("webhooks"):
                return
            version = found["metadata"].get("resourceVersion") or ""
            try:
                await self._api.execute(Patch(ref, {"webhooks": patched}, resource_version=version))
            except Refused as why:
                if why.code == 409:
                    continue
                raise
            return
        raise Refused(409, "Conflict", f"{ref} was changed by others {ATTEMPTS} times in a row")


def _trusting(hook: dict[str, Any], bundle: str) -> dict[str, Any]:
    return hook | {"clientConfig": (hook.get("clientConfig") or {}) | {"caBundle": bundle}}


assert {SECRET, MUTATING, VALIDATING} <= KINDS.keys()
