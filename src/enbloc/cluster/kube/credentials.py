"""Where the API server is, and the credentials for it, as they are now.

Which kubeconfig is used, and what lies behind it: certificates, token files and plug-ins are looked at again when they
may have changed. What a kubeconfig says is `kubeconfig`'s part, how a plug-in is asked `exec_plugin`'s.
"""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from enbloc.cluster.kube.exec_plugin import Given, run
from enbloc.cluster.kube.kubeconfig import Access, NoCredentials, of_pod, proxy_of, read

__all__ = ["Credentials", "NoCredentials", "load"]

REFRESH_S = 60.0
"""How long a result of `Credentials.authorization` may be used."""
PLUG_IN_S = 30.0
"""How long an exec plug-in may take."""
INTERACTIVE_S = 300.0
"""The same, of one that may ask the user."""
TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"
CA_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"


class Credentials:
    """One API server, with a fixed token or none. The subclass refreshes its own."""

    refresh_s = REFRESH_S
    headers: tuple[tuple[str, str], ...] = ()
    """Of every request, besides `Authorization`."""

    def __init__(
        self,
        base_url: str,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        proxy: str | None = None,
        token: str | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.tls = tls
        """Another object as soon as a certificate has changed: connections belong to the one they were made with."""
        self.server_name = server_name
        self.proxy, self.proxy_headers = _without_user(proxy or _proxy_for(self.base_url))
        self._authorization = f"Bearer {token}" if token else None

    async def authorization(self, *, refused: bool = False) -> str | None:
        """The present `Authorization` header. `refused`: the last one was rejected, so nothing cached may be used."""
        return self._authorization


class KubeconfigCredentials(Credentials):
    """Those of a context in a kubeconfig, or of the pod that this process runs in."""

    def __init__(self, access: Access, where: str, again: Callable[[], Access]) -> None:
        """`where`: the files, for messages. `again` reads the same context once more."""
        self._access = access
        self._where = where
        self._again = again
        self._given: Given | None = None
        self._tls_of: tuple[bytes, ...] | None = None
        self.headers = access.headers
        super().__init__(access.server.address, None, access.server.name, access.server.proxy)

    async def authorization(self, *, refused: bool = False) -> str | None:
        if refused:
            self._read_again()
        header = self._own_header()
        if header is None and self._access.plugin is not None:
            if self._given is None or _ends_soon(self._given):
                self._given = await run(
                    self._access.plugin, self._access.plugin_at, self._access.server, PLUG_IN_S, INTERACTIVE_S
                )
            header = _bearer(self._given.token or "", self._access.plugin_at)
        if self.base_url.startswith("https:"):
            self._renew_tls()
        return header

    def _read_again(self) -> None:
        """A kubeconfig is written anew by a login, for example."""
        now = self._again()
        if (now.server.address, now.headers) != (self._access.server.address, self._access.headers):
            raise NoCredentials(f"{self._where}: context {now.context!r} leads elsewhere by now; start again")
        self._access = now
        self._given = None

    def _own_header(self) -> str | None:
        """Without a plug-in; it is not run if there is one, as kubectl does not run it."""
        if self._access.basic:
            return _basic(self._access.basic)
        token = self._access.token
        if token is None:
            return None
        try:
            return _bearer(token.read().decode().strip(), token.where)
        except UnicodeDecodeError:
            raise NoCredentials(f"{token.where}: {token.file} is not text") from None

    def _renew_tls(self) -> None:
        """Makes another context for TLS if a certificate has changed."""
        access = self._access
        authority, certificate, key = (
            None if one is None else one.read() for one in (access.server.authority, access.certificate, access.key)
        )
        if certificate is None and self._given is not None and self._given.client_certificate_data:
            certificate, key = _pair_of(self._given)
        found = (authority or b"", certificate or b"", key or b"", b"" if access.server.verifies else b"-")
        if found == self._tls_of:
            return
        where = access.server.authority.where if access.server.authority is not None else self._where
        context = _context(authority, where, verifies=access.server.verifies)
        if certificate is not None and key is not None:
            _load_pair(context, certificate, key, access.certificate.where if access.certificate else access.plugin_at)
        self.tls, self._tls_of = context, found


async def load(kubeconfig: str | None, context: str | None) -> Credentials:
    """The credentials to use: the given file, else `$KUBECONFIG`, else `~/.kube/config`, else the pod's own."""
    files = kubeconfig or os.environ.get("KUBECONFIG") or ""
    if not files:
        usual = Path("~/.kube/config").expanduser()
        if usual.is_file():
            files = str(usual)
        elif context:
            raise NoCredentials(f"there is no kubeconfig with context {context!r}: {usual} does not exist")
        elif "KUBERNETES_SERVICE_HOST" in os.environ:
            return await _first("in this pod", lambda _: of_pod(os.environ, TOKEN_FILE, CA_FILE), None)
        else:
            raise NoCredentials(
                f"no cluster: no --kubeconfig, no $KUBECONFIG, no {usual}, and this is not a pod in a cluster"
            )
    return await _first(files, lambda chosen: read(files, chosen), context)


async def _first(where: str, reads: Callable[[str | None], Access], context: str | None) -> Credentials:
    """Reads it, and everything that it names, so that faults are reported at the start."""
    access = reads(context)
    found = KubeconfigCredentials(access, where, lambda: reads(access.context))
    await found.authorization()
    return found


def _ends_soon(given: Given) -> bool:
    """Before `authorization` is asked again."""
    ends = given.expiration_timestamp
    return ends is not None and ends <= datetime.now(UTC) + timedelta(seconds=REFRESH_S)


def _bearer(token: str, where: str) -> str | None:
    if not token.isascii() or not token.isprintable():
        raise NoCredentials(f"{where}: the token has characters that no header may have")
    return f"Bearer {token}" if token else None


def _pair_of(given: Given) -> tuple[bytes, bytes]:
    return (given.client_certificate_data or "").encode(), (given.client_key_data or "").encode()


def _context(authority: bytes | None, where: str, *, verifies: bool) -> ssl.SSLContext:
    try:
        # What is written between certificates may be in any language.
        text = None if authority is None else authority.decode("ascii", "ignore")
        if text == "":  # for Python that would be the authorities of the system
            raise ValueError("it is empty")
        context = ssl.create_default_context(cadata=text)
    except (ValueError, OSError) as why:
        raise NoCredentials(f"{where}: the cluster's certificate authority cannot be read: {_one_line(why)}") from None
    # Newer Pythons reject certificates that kubectl accepts, such as those of many clusters' own authorities.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes, where: str) -> None:
    """Loads the client's certificate. Python reads it from files alone."""
    with TemporaryDirectory(prefix="enbloc-") as folder:  # only its owner can read it
        files = Path(folder, "certificate"), Path(folder, "key")
        try:
            for file, text in zip(files, (certificate, key), strict=True):
                file.write_bytes(text)
            # Without a password a key that has one would be asked for on the terminal.
            context.load_cert_chain(*files, password="")
        except (OSError, ssl.SSLError) as why:
            raise NoCredentials(f"{where}: the client certificate cannot be read: {_one_line(why)}") from None


def _proxy_for(base_url: str) -> str | None:
    """The proxy of the environment, read once: per request it would cost more than the request. None for loopback."""
    parts = urlsplit(base_url)
    host = parts.hostname or "localhost"
    if host == "localhost" or _is_loopback(host) or proxy_bypass(host):
        return None
    url = getproxies().get(parts.scheme)
    if not url:
        return None
    return proxy_of(url if "://" in url else f"http://{url}", f"${parts.scheme}_proxy")


def _without_user(proxy: str | None) -> tuple[str | None, dict[str, str]]:
    """The proxy's URL, and the headers that say to it who asks: an error of a request quotes the URL."""
    if proxy is None or "@" not in proxy:
        return proxy, {}
    parts = urlsplit(proxy)
    user, _, at = parts.netloc.rpartition("@")
    return parts._replace(netloc=at).geturl(), {"Proxy-Authorization": _basic(unquote(user))}


def _basic(user_and_password: str) -> str:
    return f"Basic {base64.b64encode(user_and_password.encode()).decode()}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _one_line(why: BaseException) -> str:
    return " ".join(str(why).split())[:300] or type(why).__name__
