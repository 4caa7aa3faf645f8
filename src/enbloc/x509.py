"""Keys and certificates: the parts that the webhook's and the embedded API server's certificates share.

Which certificates there are, for which names and how long, is left to the callers. Importing `cryptography` costs some
50 ms, so callers that seldom need it import this module late.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BACKDATED: Final = timedelta(hours=1)
"""Certificates begin this long in the past, for clocks that are behind."""

Key = ec.EllipticCurvePrivateKey


def new_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def subject(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def certificate(
    owner: x509.Name,
    key: Key,
    issuer: x509.Name,
    issuer_key: Key,
    begin: datetime,
    days: int,
    extensions: list[tuple[x509.ExtensionType, bool]],
) -> x509.Certificate:
    """A certificate of `key`, signed with `issuer_key`. Each extension comes with whether it is critical."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(owner)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - BACKDATED)
        .not_valid_after(begin + timedelta(days=days))
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(issuer_key, hashes.SHA256())


def certificate_pem(of: x509.Certificate) -> bytes:
    return of.public_bytes(serialization.Encoding.PEM)


def key_pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
