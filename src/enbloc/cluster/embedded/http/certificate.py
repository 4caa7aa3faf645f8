"""A certificate for the embedded API server, signed by itself, for the names of this machine's loopback."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import tempfile
from pathlib import Path

import msgspec

DAYS = 365


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


def make_certificate(*addresses: str) -> Certificate:
    """Valid for loopback and these addresses or names."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "enbloc")])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = []
    for address in dict.fromkeys(("localhost", "127.0.0.1", "::1", *addresses)):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        except ValueError:
            names.append(x509.DNSName(address))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificate(made.public_bytes(serialization.Encoding.PEM), private)
