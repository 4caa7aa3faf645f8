"""A certificate for the embedded API server, signed by itself, for the names of this machine's loopback."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cryptography import x509

DAYS = 365
DAYS_LEFT = 30
"""One that is kept is made anew when it is not valid for longer."""


class Certificate(msgspec.Struct, frozen=True):
    """In PEM."""

    certificate: bytes
    key: bytes

    def context(self) -> ssl.SSLContext:
        """For a server. OpenSSL takes keys from files only: one that nobody else may read, for a moment."""
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        descriptor, path = tempfile.mkstemp(prefix="enbloc-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.key + self.certificate)
            made.load_cert_chain(path)
        finally:
            Path(path).unlink()
        return made


def kept_certificate(file: Path, *addresses: str) -> Certificate:
    """The one in the file, if it is still good for these addresses, so that whoever has a kubeconfig can go on with it;
    else a new one, which is kept there. Raises `OSError`."""
    try:
        kept = file.read_bytes()
    except OSError:
        kept = b""
    at = kept.find(b"-----BEGIN CERTIFICATE-----")
    known = Certificate(kept[max(at, 0) :], kept[: max(at, 0)])
    if _is_good(known, addresses):
        return known
    made = make_certificate(*addresses)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(made.key + made.certificate)
    return made


def _is_good(known: Certificate, addresses: tuple[str, ...]) -> bool:
    """Whether it can be read, is for these addresses, and will be valid for a while."""
    from cryptography import x509

    try:
        read = x509.load_pem_x509_certificate(known.certificate)
        known.context()
    except (ValueError, ssl.SSLError):
        return False
    names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    left = read.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    return left.days >= DAYS_LEFT and all(name in names for name in _names(addresses))


def _names(addresses: tuple[str, ...]) -> list[x509.GeneralName]:
    """Loopback, and these addresses or names."""
    from cryptography import x509

    names: list[x509.GeneralName] = []
    for address in dict.fromkeys(("localhost", "127.0.0.1", "::1", *addresses)):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        except ValueError:
            names.append(x509.DNSName(address))
    return names


def make_certificate(*addresses: str) -> Certificate:
    """Valid for loopback and these addresses or names."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "enbloc")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName(_names(addresses)), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificate(made.public_bytes(serialization.Encoding.PEM), private)
