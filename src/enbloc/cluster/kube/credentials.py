"""Where the API server is, and the credentials for it.

Kubeconfigs of the usual kind are read by `usual_kubeconfig`. All others (several files, exec plug-ins, passwords) are
read by `kubernetes_asyncio`, which is imported here and nowhere else, and only then. This module adds: which file to
use, one-line errors for the user, and when to refresh credentials.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from enbloc.cluster.kube.usual_kubeconfig import Usual, is_too_deep, of_pod
from enbloc.cluster.kube.usual_kubeconfig import read as read_usual

if TYPE_CHECKING:
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config.kube_config import KubeConfigLoader

REFRESH_S = 60.0
"""How long a result of `Credentials.authorization` may be used."""
PLUG_IN_S = 30.0
"""How long an exec plug-in may take."""
TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"
CA_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"


class NoCredentials(Exception):
    """The user's settings lead to no cluster; the message is one line for the user."""


class Credentials:
    """One API server, with a fixed token or none. The subclasses refresh theirs."""

    refresh_s = REFRESH_S

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
        self.server_name = server_name
        self.proxy = proxy or _proxy_for(self.base_url)
        self._authorization = f"Bearer {token}" if token else None

    async def authorization(self, *, refused: bool = False) -> str | None:
        """The present `Authorization` header. `refused`: the last one was rejected, so nothing cached may be used."""
        return self._authorization


class UsualCredentials(Credentials):
    """Those of a kubeconfig of the usual kind. Token files and certificates are read again when they are refreshed."""

    def __init__(self, file: str, context: str | None, usual: Usual) -> None:
        self._file = file
        self._context = context
        self._usual = usual
        tls = _usual_tls(usual) if usual.server.startswith("https:") else None
        super().__init__(usual.server, tls, usual.server_name)

    async def authorization(self, *, refused: bool = False) -> str | None:
        if refused:
            self._usual = read_usual(self._file, self._context) or self._usual
        if self.tls is not None and self._usual.certificate is not None:
            _load_pair(self.tls, self._usual)
        token = self._usual.token
        if self._usual.token_file:
            try:
                token = Path(self._usual.token_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as why:
                raise NoCredentials(f"{self._file}: tokenFile: {_one_line(why)}") from None
        return f"Bearer {token}" if token else None


class KubeconfigCredentials(Credentials):
    """The credentials of a context in a kubeconfig. Tokens from files and plug-ins are refreshed, as are
    certificates."""

    def __init__(self, files: str, context: str | None, loader: KubeConfigLoader, loaded: Configuration) -> None:
        self._files = files
        self._context = context
        self._loader = loader
        self._loaded = loaded
        host = loaded.host or ""
        tls = _tls(loaded) if host.startswith("https:") else None
        super().__init__(host, tls, loaded.tls_server_name, loaded.proxy)

    async def authorization(self, *, refused: bool = False) -> str | None:
        if refused:
            self._loader, self._loaded = await _load(self._files, self._context)
        elif not self._runs_plugin_each_time():
            await _set(self._loader, self._loaded, self._files)
        if self.tls is not None and self._loaded.cert_file:
            _load_certificate(self.tls, self._loaded)
        key: str | None = self._loaded.api_key.get("BearerToken")
        return key

    def _runs_plugin_each_time(self) -> bool:
        """A plug-in that gave no expiry is called again only when its token was rejected."""
        user = self._loader._user
        return user is not None and "exec" in user and not hasattr(self._loader, "exec_plugin_expiry")


class PodCredentials(Credentials):
    """A pod's service account. The kubelet replaces the token file now and then."""

    def __init__(self, environ: Mapping[str, str] = os.environ, token: str = TOKEN_FILE, ca: str = CA_FILE) -> None:
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config import ConfigException
        from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader

        self._loaded = Configuration()
        loader = InClusterConfigLoader(token, ca, environ=dict(environ))
        try:
            loader.load_and_set(self._loaded)
        except (ConfigException, OSError) as why:
            raise NoCredentials(f"in this pod: {why}") from None
        self._loader = loader
        super().__init__(self._loaded.host or "", _tls(self._loaded))

    async def authorization(self, *, refused: bool = False) -> str | None:
        if refused:
            try:
                self._loader.load_and_set(self._loaded)
            except Exception as why:
                raise NoCredentials(f"in this pod: {why}") from None
        key: str | None = await self._loaded.get_api_key_with_prefix("BearerToken")
        return key.strip() if key else None


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
            own = of_pod(os.environ, TOKEN_FILE, CA_FILE)
            return UsualCredentials("in this pod", None, own) if own is not None else PodCredentials()
        else:
            raise NoCredentials(
                f"no cluster: no --kubeconfig, no $KUBECONFIG, no {usual}, and this is not a pod in a cluster"
            )
    if not any(Path(file).expanduser().is_file() for file in files.split(os.pathsep) if file):
        raise NoCredentials(f"{files}: there is no such kubeconfig")
    for file in filter(None, files.split(os.pathsep)):
        if is_too_deep(file):
            raise NoCredentials(f"{file}: nested too deep for a kubeconfig")
    found = read_usual(files, context)
    if found is not None:
        return UsualCredentials(files, context, found)
    loader, loaded = await _load(files, context)
    server = str(getattr(loader, "host", ""))
    if not server.startswith(("https://", "http://")):
        raise NoCredentials(f"{files}: the cluster's server is not an http(s) address: {server[:80]!r}")
    return KubeconfigCredentials(files, context, loader, loaded)


async def _load(files: str, context: str | None) -> tuple[KubeConfigLoader, Configuration]:
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config.kube_config import KubeConfigLoader, KubeConfigMerger

    loaded = Configuration()
    try:
        merged = KubeConfigMerger(files).config
        loader = KubeConfigLoader(config_dict=merged, active_context=context, config_base_path=None)
    except Exception as why:  # the loader raises many types for files that users wrote
        raise NoCredentials(f"{files}: {_one_line(why)}") from None
    await _set(loader, loaded, files)
    return loader, loaded


async def _set(loader: KubeConfigLoader, loaded: Configuration, files: str) -> None:
    try:
        async with asyncio.timeout(PLUG_IN_S):
            await loader.load_and_set(loaded)
    except TimeoutError:
        raise NoCredentials(f"{files}: the exec plug-in took longer than {PLUG_IN_S:.0f} s") from None
    except Exception as why:
        raise NoCredentials(f"{files}: {_one_line(why)}") from None


def _tls(loaded: Configuration) -> ssl.SSLContext:
    context = _context(loaded.ssl_ca_cert, None, verifies=bool(loaded.verify_ssl))
    if loaded.cert_file:
        _load_certificate(context, loaded)
    return context


def _usual_tls(usual: Usual) -> ssl.SSLContext:
    authority = usual.authority
    file, text = (authority.file or None, authority.text or None) if authority is not None else (None, None)
    context = _context(file, text, verifies=usual.verifies)
    if usual.certificate is not None:
        _load_pair(context, usual)
    return context


def _context(ca_file: str | None, ca_text: str | None, *, verifies: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_file, cadata=ca_text)
    except (OSError, ssl.SSLError) as why:
        raise NoCredentials(f"the cluster's certificate authority cannot be read: {_one_line(why)}") from None
    # Newer Pythons reject certificates that kubectl accepts, such as those of many clusters' own authorities.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _load_pair(context: ssl.SSLContext, usual: Usual) -> None:
    """Loads the client's certificate, for new connections. Python reads it from files alone."""
    assert usual.certificate is not None
    assert usual.key is not None
    with TemporaryDirectory(prefix="enbloc-") as folder:  # only its owner can read it
        files = []
        for name, material in (("certificate", usual.certificate), ("key", usual.key)):
            path = Path(material.file or folder, "" if material.file else name)
            if not material.file:
                path.write_text(material.text, encoding="ascii")
            files.append(str(path))
        try:
            context.load_cert_chain(files[0], keyfile=files[1])
        except (OSError, ssl.SSLError) as why:
            raise NoCredentials(f"the client certificate cannot be read: {_one_line(why)}") from None


def _load_certificate(context: ssl.SSLContext, loaded: Configuration) -> None:
    """Loads the client's certificate, for new connections."""
    try:
        context.load_cert_chain(str(loaded.cert_file), keyfile=loaded.key_file)
    except (OSError, ssl.SSLError) as why:
        raise NoCredentials(f"the client certificate cannot be read: {_one_line(why)}") from None


def _proxy_for(base_url: str) -> str | None:
    """The proxy of the environment, read once: per request it would cost more than the request. None for loopback."""
    parts = urlsplit(base_url)
    host = parts.hostname or "localhost"
    if host == "localhost" or _is_loopback(host) or proxy_bypass(host):
        return None
    return getproxies().get(parts.scheme)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _one_line(why: BaseException) -> str:
    return " ".join(str(why).split())[:300] or type(why).__name__
