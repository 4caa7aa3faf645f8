"""Kubeconfigs of the usual kind, read without `kubernetes_asyncio`, whose import takes half a second of CPU.

Usual is one file with a server and a token, a token file, a client certificate, or none of them. A pod's own account is
of that kind too. Anything else (several files, plug-ins, passwords, proxies) and every fault is left to the library,
which reads all of it and says what is wrong.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

_CLUSTER: Final = frozenset(
    {
        "server",
        "certificate-authority",
        "certificate-authority-data",
        "insecure-skip-tls-verify",
        "tls-server-name",
        "extensions",
    }
)
_USER: Final = frozenset(
    {"token", "tokenFile", "client-certificate", "client-certificate-data", "client-key", "client-key-data"}
)


class Material(NamedTuple):
    """A certificate or a key: the file that has it, or its text."""

    file: str = ""
    text: str = ""


class Usual(NamedTuple):
    server: str
    authority: Material | None
    """`None`: those of the system."""
    verifies: bool
    server_name: str | None
    token: str
    token_file: str
    certificate: Material | None
    key: Material | None


_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEPTH: Final = 100


class _Unusual(Exception):
    pass


def is_too_deep(file: str) -> bool:
    """Whether a kubeconfig is nested so deep that reading it could end the process."""
    depth = 0
    try:
        for event in yaml.parse(Path(file).expanduser().read_bytes(), Loader=_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEPTH:
                return True
    except (OSError, ValueError, yaml.YAMLError):
        pass  # whoever reads it says so
    return False


def read(file: str, context: str | None) -> Usual | None:
    """What a kubeconfig says; `None`: it is not of the usual kind, or has a fault."""
    try:
        path = Path(file).expanduser()
        document = yaml.load(path.read_bytes(), Loader=_LOADER)
        return _read(document, context, path.parent)
    except (_Unusual, OSError, ValueError, yaml.YAMLError):
        return None


def _read(document: Any, context: str | None, base: Path) -> Usual:
    chosen = context or _mapping(document).get("current-context")
    named = _named(document, "contexts", "context", chosen)
    cluster = _named(document, "clusters", "cluster", named.get("cluster"))
    user = _named(document, "users", "user", named.get("user")) if named.get("user") else {}
    if not cluster.keys() <= _CLUSTER or not user.keys() <= _USER:
        raise _Unusual
    server, verifies = _text(cluster, "server"), not cluster.get("insecure-skip-tls-verify", False)
    token, token_file = _text(user, "token"), _text(user, "tokenFile")
    certificate, key = _material(user, "client-certificate", base), _material(user, "client-key", base)
    if (
        not server.startswith(("https://", "http://"))
        or (token and token_file)
        or (certificate is None) != (key is None)
    ):
        raise _Unusual
    return Usual(
        server,
        _material(cluster, "certificate-authority", base),
        verifies,
        _text(cluster, "tls-server-name") or None,
        token,
        _existing(base / token_file) if token_file else "",
        certificate,
        key,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Unusual
    return value


def _named(document: Any, many: str, one: str, name: Any) -> Mapping[str, Any]:
    """The entry of that name, of which there must be exactly one."""
    entries = _mapping(document).get(many)
    found = [entry for entry in entries if _mapping(entry).get("name") == name] if isinstance(entries, list) else []
    if not isinstance(name, str) or len(found) != 1:
        raise _Unusual
    return _mapping(found[0].get(one) or {})


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    if value is not None and not isinstance(value, str):
        raise _Unusual
    return value or ""


def _material(values: Mapping[str, Any], key: str, base: Path) -> Material | None:
    file, data = _text(values, key), _text(values, f"{key}-data")
    if file and data:
        raise _Unusual
    if data:
        try:
            return Material(text=base64.b64decode(data, validate=True).decode("ascii"))
        except (binascii.Error, UnicodeDecodeError):
            raise _Unusual from None
    return Material(file=_existing(base / file)) if file else None


def _existing(path: Path) -> str:
    if not path.is_file():
        raise _Unusual
    return str(path)


def of_pod(environ: Mapping[str, str], token_file: str, ca_file: str) -> Usual | None:
    """The account of the pod that this process runs in; `None`: something of it is missing."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        return None
    try:
        if not Path(token_file).read_bytes().strip() or not Path(ca_file).read_bytes().strip():
            return None
    except OSError:
        return None
    address = f"[{host}]" if ":" in host else host
    return Usual(f"https://{address}:{port}", Material(file=ca_file), True, None, "", token_file, None, None)
