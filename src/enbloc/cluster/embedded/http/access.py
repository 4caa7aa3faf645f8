"""Access control: a bearer token for everything but health, version and, on loopback, the read-only pages.

There is one user, who may do everything; the review APIs say so. If the server listens on loopback only, the pages that
need no token are served to requests for a loopback host name only: a web page elsewhere could otherwise read them
through a host name of its own that resolves to this machine (DNS rebinding). On another address the JSON behind the
page needs the token; the page itself, which has no data, asks its reader for it.
"""

from __future__ import annotations

import hmac
import ipaddress
from typing import Any

from aiohttp import web

from enbloc.cluster.embedded.http.status import refusal

USER = "enbloc-admin"
GROUPS = ("system:masters", "system:authenticated")


class Access:
    """The token, and what needs none."""

    def __init__(self, token: str, *, loopback_only: bool = True) -> None:
        self._header = f"Bearer {token}".encode()
        self._loopback_only = loopback_only

    def check_token(self, request: web.BaseRequest) -> None:
        """Raises `Refused` (401)."""
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._header):
            raise refusal(401, "Unauthorized")

    def check_page(self, request: web.BaseRequest) -> None:
        """Raises `Refused` (401, 403) for a page that this request may not read."""
        self.check_host(request)
        if not self._loopback_only and request.path.startswith("/api/"):
            self.check_token(request)

    def check_host(self, request: web.BaseRequest) -> None:
        """Raises `Refused` (403) for a foreign host name."""
        host = request.headers.get("Host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if self._loopback_only and not is_loopback(name.removeprefix("[").removesuffix("]")):
            raise refusal(403, f"this server serves localhost, not {name[:80]!r}")


def is_loopback(host: str) -> bool:
    """Whether it is `localhost` or a loopback address. Any other name could be a foreign one that resolves to such an
    address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def review(kind: str, body: Any) -> dict[str, Any]:
    """The answer to a SelfSubject…Review: everything is allowed."""
    given = body if isinstance(body, dict) else {}
    spec = given.get("spec") if isinstance(given.get("spec"), dict) else {}
    made = {"kind": kind, "metadata": {"creationTimestamp": None}, "spec": spec}
    match kind:
        case "SelfSubjectAccessReview":
            status: dict[str, Any] = {"allowed": True, "reason": "the token may do everything"}
        case "SelfSubjectRulesReview":
            rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
            paths = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
            status = {"resourceRules": rules, "nonResourceRules": paths, "incomplete": False}
        case _:
            status = {"userInfo": {"username": USER, "groups": list(GROUPS)}}
    group = "authentication.k8s.io" if kind == "SelfSubjectReview" else "authorization.k8s.io"
    return {"apiVersion": f"{group}/v1", **made, "status": status}


REVIEWS = {
    "/apis/authentication.k8s.io/v1/selfsubjectreviews": "SelfSubjectReview",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": "SelfSubjectAccessReview",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": "SelfSubjectRulesReview",
}
