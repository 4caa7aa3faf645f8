"""Which clients may send reviews: any, or those with a certificate of a CA that the administrator names.

Kubernetes lets an API server present a client certificate to webhooks, if its `AdmissionConfiguration` says so. Probes
have none, so a missing certificate is refused request by request, while an invalid one fails the handshake.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec


class Clients(msgspec.Struct, frozen=True):
    """`ca_file`: PEM certificates of the CAs; without it any client is served. `names`: the common names or DNS names
    of which a certificate must have one; any name if empty."""

    ca_file: Path | None = None
    names: tuple[str, ...] = ()

    def ask_in(self, context: ssl.SSLContext) -> None:
        """Asks clients for a certificate. Raises `OSError` if the file cannot be read."""
        if self.ca_file is None:
            return
        try:
            context.load_verify_locations(self.ca_file)
        except ssl.SSLError as why:
            raise OSError(f"{self.ca_file} has no usable CA certificate: {why.reason or why}") from None
        context.verify_mode = ssl.CERT_OPTIONAL

    def refusal(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Why this client gets no review; `None` if it does. `certificate` is as `getpeercert` returns it."""
        if self.ca_file is None:
            return None
        if not certificate:
            return "reviews need a client certificate"
        found = _names(certificate)
        if self.names and not found & set(self.names):
            return f"the client certificate is for {', '.join(sorted(found))[:200]!r}, which may not send reviews"
        return None


ANY_CLIENT: Final = Clients()


def _names(certificate: Mapping[str, Any]) -> set[str]:
    common = {value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"}
    return common | {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}
