"""The embedded API server's certificate, self-signed, for the names of this machine's loopback."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from enbloc.cluster.embedded.api.private_files import read_secret, write_private

if TYPE_CHECKING:
    from cryptography import x509

DAYS = 365
DAYS_LEFT = 30
"""A stored certificate is replaced when it is valid for fewer days."""


class Certificate(msgspec.Struct, frozen=True):
    """In PEM."""

    certificate: bytes
    key: bytes

    def context(self) -> ssl.SSLContext:
        """A server's context. OpenSSL reads keys from files only: a temporary one that only this user can read."""
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        descriptor, path = tempfile.mkstemp(prefix="enbloc-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.key + self.certificate)
            made.load_cert_chain(path)
        finally:
            Path(path).unlink()
        return made


def load_certificate(file: Path, *addresses: str) -> Certificate:
    """The certificate in the file, if it is valid for these addresses, so that kubeconfigs stay valid over restarts;
    else a new one, which is stored there. Raises `OSError`."""
    stored = read_secret(file) or b""
    at = stored.find(b"-----BEGIN CERTIFICATE-----")
    known = Certificate(stored[max(at, 0) :], stored[: max(at, 0)])
    if _is_usable(known, addresses):
        return known
    made = make_certificate(*addresses)
    write_private(file, made.key + made.certificate)
    return made


def _is_usable(known: Certificate, addresses: tuple[str, ...]) -> bool:
    """Whether it can be read, is for these addresses, and is valid for `DAYS_LEFT`."""
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
    """Loopback and these addresses or names, as subject alternative names."""
    from cryptography import x509

    names: list[x509.GeneralName] = []
    for address in dict.fromkeys(("localhost", "127.0.0.1", "::1", *addresses)):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        except ValueError:
            names.append(x509.DNSName(address))
    return names


def make_certificate(*addresses: str) -> Certificate:
    """A certificate for loopback and these addresses or names."""
    from cryptography import x509

    from enbloc import x509 as ours

    key, owner = ours.new_key(), ours.subject("enbloc")
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (x509.SubjectAlternativeName(_names(addresses)), False),
        (x509.BasicConstraints(ca=True, path_length=0), True),
    ]
    now = datetime.datetime.now(datetime.UTC)
    made = ours.certificate(owner, key, owner, key, now, DAYS, extensions)
    return Certificate(ours.certificate_pem(made), ours.key_pem(key))
