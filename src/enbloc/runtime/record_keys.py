"""The keys of record digests in a cluster: one Secret, shared by all replicas (S2).

The first replica that finds no key writes one; a conflict means that another one did, and its key is read. An
account that may write the Secret can add keys; keys are never removed here.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Create, Patch, Refused, Write
from enbloc.gangs.record_digests import Keyring, new_keyring, read_keys, write_keys

SECRET: Final = "enbloc-record-keys"
ATTEMPTS: Final = 5

log = logging.getLogger(__name__)


class Api(Protocol):
    """What is needed of a cluster."""

    async def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        """One object as it is now, or `None`. Raises `Refused` if the API does not answer."""
        ...

    async def execute(self, write: Write) -> Obj | None:
        """Executes one write. Raises `Refused`."""
        ...


async def shared_keyring(api: Api, namespace: str) -> Keyring:
    """The keys of the Secret, with a first one if it has none. Without the right to it, or without its namespace, a key
    of this process alone. Raises `Refused` if the API does not answer."""
    try:
        return await _read_or_write(api, Ref("Secret", namespace, SECRET))
    except Refused as why:
        if why.code not in (403, 404):
            raise
        log.warning(
            "no key for records in Secret %s/%s (%s): claims and marks of this process do not count after its end; "
            "apply the output of `enbloc install`",
            namespace,
            SECRET,
            why,
        )
        return new_keyring()


async def _read_or_write(api: Api, ref: Ref) -> Keyring:
    for _ in range(ATTEMPTS):
        secret = await api.get(*ref)
        known = read_keys((secret or {}).get("data") or {})
        if known is not None:
            return known
        made = new_keyring()
        try:
            await api.execute(_written(ref, secret, made))
        except Refused as why:
            if why.code != 409:
                raise
            continue  # another replica wrote it first: read it again
        log.info("created the key for records in Secret %s/%s", ref.namespace, ref.name)
        return made
    raise Refused(409, "Conflict", f"{ref} was changed by others {ATTEMPTS} times in a row")


def _written(ref: Ref, secret: Obj | None, keyring: Keyring) -> Write:
    data = write_keys(keyring)
    if secret is None:
        metadata = {"name": ref.name, "namespace": ref.namespace}
        return Create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data})
    return Patch(ref, {"data": data}, resource_version=secret["metadata"].get("resourceVersion") or "")
