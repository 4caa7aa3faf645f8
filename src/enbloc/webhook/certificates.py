"""The webhook's certificates: what the Secret holds, what is due at a time, and new keys and certificates.

A CA of our own signs the serving certificate, and API servers trust the CAs in the bundle. A certificate in use is
never invalidated:

- A new CA joins the bundle long before the present one expires. It signs nothing until the API servers had time to read
  the new bundle (`OVERLAP`).
- Then a new serving certificate is created. The old CA stays in the bundle as long as it is valid.

Unusable certificates are replaced at once: expired, not valid yet (a clock was wrong), for other names, or not signed
by a CA in the bundle. The time is an argument; nothing here reads or writes a cluster.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from enbloc.units import SECOND
from enbloc.x509 import BACKDATED, certificate, certificate_pem, key_pem, new_key, subject

AUTHORITY_DAYS: Final = 730
SERVING_DAYS: Final = 90
RENEW_AT_PART: Final = 3
"""A certificate is renewed when less than a third of its life is left."""
OVERLAP: Final = timedelta(hours=1)
"""How long a new CA is trusted before it signs the serving certificate."""
MAX_AUTHORITIES: Final = 4

BUNDLE, AUTHORITY_KEY, SERVING, SERVING_KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
"""The keys of the Secret. The first certificate of the bundle is the one whose key is in `ca.key`."""


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


class Content(msgspec.Struct, frozen=True):
    """What a Secret holds, as far as it can be decoded."""

    authority: Pair | None = None
    trusted: tuple[x509.Certificate, ...] = ()
    """The bundle, the present authority first."""
    serving: Pair | None = None


class Renewal(msgspec.Struct, frozen=True):
    """What to create, and which CAs stay in the bundle."""

    new_authority: bool
    new_serving: bool
    kept: tuple[x509.Certificate, ...]

    def is_nothing(self, content: Content) -> bool:
        return not self.new_authority and not self.new_serving and self.kept == content.trusted


def read(data: Mapping[str, str]) -> Content:
    """A Secret's `data`. What is missing or unreadable counts as absent."""
    trusted = _certificates(data.get(BUNDLE))
    authority_key = _key(data.get(AUTHORITY_KEY))
    authority = None
    if authority_key is not None and trusted and _match(trusted[0], authority_key):
        authority = Pair(trusted[0], authority_key)
    chain = _certificates(data.get(SERVING))
    serving_key = _key(data.get(SERVING_KEY))
    serving = None
    if serving_key is not None and chain and _match(chain[0], serving_key):
        serving = Pair(chain[0], serving_key)
    return Content(authority, trusted, serving)


def due(content: Content, names: Sequence[str], now_ns: int) -> Renewal:
    """What is due at this time."""
    at = _moment(now_ns)
    valid = tuple(one for one in content.trusted if _is_valid(one, at))[:MAX_AUTHORITIES]
    authority, serving = content.authority, content.serving
    has_authority = authority is not None and _is_valid(authority.certificate, at)
    usable = (
        serving is not None
        and _is_valid(serving.certificate, at)
        and _names_of(serving.certificate) == set(names)
        and any(_signed(serving.certificate, one) for one in valid)
    )
    if not has_authority or authority is None:
        return Renewal(True, not usable, valid[: MAX_AUTHORITIES - 1])
    if not usable or serving is None:
        return Renewal(False, True, valid)  # a CA that is due for renewal is still the one that API servers trust
    if _is_due(authority.certificate, at):
        return Renewal(True, False, valid[: MAX_AUTHORITIES - 1])  # it signs nothing yet
    has_got_around = at - authority.certificate.not_valid_before_utc >= BACKDATED + OVERLAP
    of_the_past = not _signed(serving.certificate, authority.certificate)
    return Renewal(False, (_is_due(serving.certificate, at) or of_the_past) and has_got_around, valid)


def renewed(content: Content, work: Renewal, names: Sequence[str], now_ns: int) -> Content:
    """The content after the work. Creates keys, so no two calls return the same."""
    at = _moment(now_ns)
    authority = new_authority(at) if work.new_authority or content.authority is None else content.authority
    others = tuple(one for one in work.kept if one != authority.certificate)
    serving = content.serving
    if work.new_serving or serving is None:
        serving = new_serving(authority, names, at)
    return Content(authority, (authority.certificate, *others)[:MAX_AUTHORITIES], serving)


def secret_data(content: Content) -> dict[str, str]:
    """The content as a Secret's `data`."""
    assert content.authority is not None
    assert content.serving is not None
    texts = {
        BUNDLE: bundle_pem(content),
        AUTHORITY_KEY: key_pem(content.authority.key),
        SERVING: certificate_pem(content.serving.certificate),
        SERVING_KEY: key_pem(content.serving.key),
    }
    return {name: base64.b64encode(text).decode() for name, text in texts.items()}


def bundle_pem(content: Content) -> bytes:
    """The CA bundle for API servers."""
    return b"".join(map(certificate_pem, content.trusted))


def serving_pem(content: Content) -> bytes:
    """Certificate and key in one piece, as a TLS server loads it."""
    assert content.serving is not None
    return certificate_pem(content.serving.certificate) + key_pem(content.serving.key)


def served_until(content: Content) -> int:
    """When the serving certificate expires, in nanoseconds since the epoch."""
    assert content.serving is not None
    return int(content.serving.certificate.not_valid_after_utc.timestamp()) * SECOND


def new_authority(at: datetime) -> Pair:
    key, owner = new_key(), subject(f"enbloc webhook authority {at:%Y-%m-%d %H:%M:%S}")
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (_usage(signs_certificates=True), True),
        (identifier, False),
        (_issued_by(identifier), False),
    ]
    return Pair(certificate(owner, key, owner, key, at, AUTHORITY_DAYS, extensions), key)


def new_serving(authority: Pair, names: Sequence[str], at: datetime) -> Pair:
    key, issuer = new_key(), authority.certificate
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (_usage(signs_certificates=False), True),
        (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
        (x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), False),
        (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
        (_issued_by(identifier), False),
    ]
    made = certificate(subject(names[0][:64]), key, issuer.subject, authority.key, at, SERVING_DAYS, extensions)
    return Pair(made, key)


def _issued_by(identifier: x509.SubjectKeyIdentifier) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _moment(now_ns: int) -> datetime:
    return datetime.fromtimestamp(now_ns // SECOND, UTC)


def _is_valid(certificate: x509.Certificate, at: datetime) -> bool:
    return certificate.not_valid_before_utc <= at < certificate.not_valid_after_utc


def _is_due(certificate: x509.Certificate, at: datetime) -> bool:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - at < life / RENEW_AT_PART


def _names_of(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return set()
    return set(names.get_values_for_type(x509.DNSName))


def _signed(certificate: x509.Certificate, by: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(by)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _match(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bool:
    return certificate.public_key() == key.public_key()


def _decoded(text: str | None) -> bytes:
    try:
        return base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _certificates(text: str | None) -> tuple[x509.Certificate, ...]:
    try:
        found = x509.load_pem_x509_certificates(_decoded(text))
        for one in found:
            one.public_key()  # raises for key types that are not supported
    except Exception:  # whatever a Secret holds, it must not stop the webhook
        return ()
    return tuple(found)


def _key(text: str | None) -> ec.EllipticCurvePrivateKey | None:
    try:
        key = serialization.load_pem_private_key(_decoded(text), password=None)
    except Exception:  # as above
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None
