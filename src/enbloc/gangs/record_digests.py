"""Keyed digests of the records that the scheduler writes on objects (S2): made by `sign`, checked by `verify`.

A digest is an HMAC-SHA256 over parts that name the object, the kind of record and its content, so that it counts for
that one record on that one object. It carries the id of its key: a keyring signs with one key and verifies with all
that it has. Where keys are kept is the caller's matter.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

KEY_BYTES: Final = 32
SHORTEST_KEY_BYTES: Final = 16
MOST_KEYS: Final = 32
"""A Secret with more keys was not written for this; the newest count."""
BLOCK_BYTES: Final = 64
"""Of SHA-256."""
DIGEST_CHARS: Final = 32
"""128 bits in hexadecimal digits."""
SEAL_CHARS: Final = 128
"""The digest before a record, with its key's id, is shorter than this."""
_SEALED: Final = "hmac:"
_KEY_ID: Final = re.compile(r"key-([1-9][0-9]{0,8})", re.ASCII)


class Keyring(msgspec.Struct, frozen=True):
    """Keys by id (`key-1`, `key-2`, …). The one with the highest number signs; the others verify until removed."""

    keys: Mapping[str, bytes]
    trusts_all: bool = False
    """Whether every record counts, signed or not: for files whose records were checked when they were written."""

    @property
    def signing_id(self) -> str:
        return max(self.keys, key=_number) if len(self.keys) > 1 else next(iter(self.keys))


def new_keyring() -> Keyring:
    """One random key."""
    return Keyring({"key-1": secrets.token_bytes(KEY_BYTES)})


SIMULATED: Final = Keyring({"key-1": b"enbloc sim: no secret is kept by this key"})
"""In virtual time all records are the scenario's own; a fixed key makes every run the same."""


TRUSTING: Final = Keyring(SIMULATED.keys, trusts_all=True)
"""For files whose records are taken as they are."""


def sign(keyring: Keyring, parts: Sequence[str]) -> str:
    """`key-1:0123…`: the digest of these parts, in this order. None of them may contain a NUL."""
    key_id = keyring.signing_id
    message = _joined(parts)
    assert message is not None, "what is signed here contains no NUL"
    return f"{key_id}:{_digest(keyring.keys[key_id], message)}"


def verify(keyring: Keyring, digest: str, parts: Sequence[str]) -> bool:
    """Whether a digest was made of these parts with one of the keys."""
    if keyring.trusts_all:
        return True
    key_id, _, given = digest[:64].partition(":")
    key = keyring.keys.get(key_id)
    message = _joined(parts)
    if key is None or len(given) != DIGEST_CHARS or message is None:
        return False
    return hmac.compare_digest(given.encode(errors="replace"), _digest(key, message).encode())


def sealed(keyring: Keyring, parts: Sequence[str], body: str) -> str:
    """The text of a record with its digest before it."""
    return f"{_SEALED}{sign(keyring, (*parts, body))}:{body}"


def is_sealed(keyring: Keyring, parts: Sequence[str], text: str) -> bool:
    """Whether a text was made by `sealed` of these parts with one of the keys."""
    digest, body = parted(text)
    return verify(keyring, digest, (*parts, body))


def parted(text: str) -> tuple[str, str]:
    """The digest, which may be missing, and the record."""
    if not text.startswith(_SEALED):
        return "", text
    key_id, _, rest = text.removeprefix(_SEALED).partition(":")
    digest, _, body = rest.partition(":")
    return f"{key_id}:{digest}", body


def names_known_key(keyring: Keyring, digest: str) -> bool:
    """Whether a digest says that it was made with one of the keys: if it does not verify then, it was forged."""
    return digest[:64].partition(":")[0] in keyring.keys


def _joined(parts: Sequence[str]) -> bytes | None:
    """No two lists of parts give the same message; `None` for parts that would, since they contain a NUL."""
    message = "\0".join(parts)
    return message.encode(errors="surrogatepass") if message.count("\0") == len(parts) - 1 else None


def _digest(key: bytes, message: bytes) -> str:
    """HMAC-SHA256. The standard library's takes twice as long, since it prepares the key for each message."""
    inner, outer = _prepared(key)
    first, second = inner.copy(), outer.copy()
    first.update(message)
    second.update(first.digest())
    found: str = second.hexdigest()[:DIGEST_CHARS]
    return found


@lru_cache(maxsize=MOST_KEYS)
def _prepared(key: bytes) -> tuple[Any, Any]:
    """The two hashes of HMAC, each after its first block (RFC 2104)."""
    block = (hashlib.sha256(key).digest() if len(key) > BLOCK_BYTES else key).ljust(BLOCK_BYTES, b"\0")
    inner, outer = (hashlib.sha256(bytes(byte ^ pad for byte in block)) for pad in (0x36, 0x5C))
    return inner, outer


def read_keys(data: Mapping[str, str]) -> Keyring | None:
    """A Secret's `data`; `None` if it has no key that can be read."""
    found: dict[str, bytes] = {}
    for key_id in sorted(filter(_KEY_ID.fullmatch, data), key=_number)[-MOST_KEYS:]:
        try:
            key = base64.b64decode(data[key_id], validate=True)
        except (binascii.Error, ValueError):
            continue
        if len(key) >= SHORTEST_KEY_BYTES:
            found[key_id] = key
    return Keyring(found) if found else None


def write_keys(keyring: Keyring) -> dict[str, str]:
    """The keys as a Secret's `data`."""
    return {key_id: base64.b64encode(key).decode() for key_id, key in keyring.keys.items()}


def _number(key_id: str) -> int:
    return int(key_id.removeprefix("key-"))
