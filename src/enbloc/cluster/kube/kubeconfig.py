"""What a kubeconfig says of one context: where the API server is, how to know it, and how to be known to it.

Several files count as one, as kubectl merges them: of entries with one name the first file's is taken,
`current-context` is that of the first file that sets it, and files that do not exist are skipped. A path is relative to
its file.

Of the context, the cluster and the user that are used, every key is known or an error: one that was left out silently
would lead to another cluster, or to it as another user. No message contains a secret. What the paths lead to is read
by `credentials`, plug-ins are run by `exec_plugin`.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
import yaml

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEPTH: Final = 100
_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""Of a cluster: what its plug-in is given besides."""


class NoCredentials(Exception):
    """The user's settings lead to no cluster; the message is one line for the user."""


class Material(NamedTuple):
    """A certificate, a key or a token: its text, or the file that has it."""

    where: str
    """The file and the key that say so, for messages."""
    text: bytes = b""
    file: Path | None = None

    def read(self) -> bytes:
        if self.file is None:
            return self.text
        try:
            return self.file.read_bytes()
        except OSError as why:
            raise NoCredentials(f"{self.where}: {self.file}: {why.strerror}") from None


class Server(NamedTuple):
    address: str
    authority: Material | None
    """`None`: those of the system."""
    verifies: bool
    name: str | None
    """The name in its certificate, if it is not that of the address."""
    proxy: str
    disable_compression: bool
    extension: Any
    """What its plug-in is given besides."""


class Variable(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    value: str = ""


class Plugin(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A program that gives tokens or certificates."""

    command: str
    api_version: Literal["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str | None = None
    interactive_mode: Literal["Never", "IfAvailable", "Always"] | None = None
    provide_cluster_info: bool | None = None


class Access(NamedTuple):
    """One context."""

    context: str
    server: Server
    token: Material | None = None
    basic: str = ""
    """User name and password."""
    certificate: Material | None = None
    key: Material | None = None
    plugin: Plugin | None = None
    plugin_at: str = ""
    """The file and the key that name the plug-in."""
    headers: tuple[tuple[str, str], ...] = ()
    """Those of impersonation."""


class _Cluster(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None
    disable_compression: bool | None = None
    extensions: list[Any] | None = None


class _User(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    impersonate: str | None = msgspec.field(default=None, name="as")
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    auth_provider: Any = None
    exec: Plugin | None = None
    extensions: list[Any] | None = None


class _Context(msgspec.Struct, forbid_unknown_fields=True):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None
    extensions: list[Any] | None = None


class _Named(msgspec.Struct):
    name: str
    cluster: Any = None
    user: Any = None
    context: Any = None


class _File(msgspec.Struct, rename="kebab"):
    current_context: str | None = None
    clusters: list[_Named] | None = None
    users: list[_Named] | None = None
    contexts: list[_Named] | None = None


class _Entry(NamedTuple):
    file: Path
    at: str
    """The name of the file, then that of the entry as `kubectl config set` takes it."""
    values: Any


_Kind = TypeVar("_Kind")


def read(files: str, context: str | None) -> Access:
    """What the files (a path, or several with colons between) say of a context, else of their current one. Raises
    `NoCredentials`."""
    merged: dict[str, dict[str, _Entry]] = {"clusters": {}, "users": {}, "contexts": {}}
    current = ""
    found = False
    for name in filter(None, files.split(os.pathsep)):
        path = Path(name).expanduser()
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as why:
            raise NoCredentials(f"{name}: cannot be read: {why.strerror}") from None
        one = _converted(_document(text, name), _File, name)
        found = True
        current = current or one.current_context or ""
        for kind, entries in _entries(one, path, name):
            merged[kind] = entries | merged[kind]
    if not found:
        raise NoCredentials(f"{files}: there is no such kubeconfig")
    chosen = context or current
    if not chosen:
        raise NoCredentials(f"{files}: current-context is not set, and no context was asked for")
    if chosen not in merged["contexts"]:
        known = ", ".join(sorted(merged["contexts"])) or "none"
        raise NoCredentials(f"{files}: contexts: there is no {chosen!r} (there are: {known})")
    entry = merged["contexts"][chosen]
    parts = _converted(entry.values, _Context, entry.at)
    if not parts.cluster:
        raise NoCredentials(f"{entry.at}.cluster: is not set")
    server = _server(_referred(merged["clusters"], entry, "cluster", parts.cluster))
    if not parts.user:
        return Access(chosen, server)
    return _access(chosen, server, _referred(merged["users"], entry, "user", parts.user))


def _document(text: bytes, name: str) -> Any:
    """The file's YAML. One that is nested so deep that reading it could end the process is an error."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEPTH:
                raise NoCredentials(f"{name}: nested too deep for a kubeconfig")
        loaded = yaml.load(text, Loader=_LOADER)
        return {} if loaded is None else loaded
    except yaml.MarkedYAMLError as why:  # not its text, which quotes the file
        line = f" in line {why.problem_mark.line + 1}" if why.problem_mark is not None else ""
        raise NoCredentials(f"{name}: not YAML: {why.problem or why.context}{line}") from None
    except (yaml.YAMLError, ValueError):
        raise NoCredentials(f"{name}: not YAML") from None


def _entries(one: _File, path: Path, name: str) -> Iterator[tuple[str, dict[str, _Entry]]]:
    """The entries of a file by kind and name."""
    for kind, listed in (("clusters", one.clusters), ("users", one.users), ("contexts", one.contexts)):
        entries: dict[str, _Entry] = {}
        for each in listed or ():
            at = f"{name}: {kind}.{each.name}"
            if each.name in entries:
                raise NoCredentials(f"{at}: there are two of this name")
            values = getattr(each, kind[:-1])
            entries[each.name] = _Entry(path, at, {} if values is None else values)
        yield kind, entries


def _referred(entries: Mapping[str, _Entry], by: _Entry, kind: str, name: str) -> _Entry:
    if name not in entries:
        raise NoCredentials(f"{by.at}.{kind}: there is no {kind} {name!r}")
    return entries[name]


def _converted(values: Any, kind: type[_Kind], at: str) -> _Kind:
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as why:
        raise NoCredentials(f"{at}: {why}") from None


# -- the server


def _server(entry: _Entry) -> Server:
    values = _converted(entry.values, _Cluster, entry.at)
    address = values.server or ""
    _check_address(address, f"{entry.at}.server")
    authority = _material(
        entry, "certificate-authority", values.certificate_authority, values.certificate_authority_data
    )
    if authority is not None and values.insecure_skip_tls_verify:
        raise NoCredentials(f"{entry.at}: certificate-authority and insecure-skip-tls-verify exclude each other")
    extension = None
    for each in values.extensions or ():
        if isinstance(each, dict) and each.get("name") == _EXTENSION:
            extension = each.get("extension")
    return Server(
        address.rstrip("/"),
        authority,
        not values.insecure_skip_tls_verify,
        values.tls_server_name or None,
        proxy_of(values.proxy_url or "", f"{entry.at}.proxy-url"),
        bool(values.disable_compression),
        extension,
    )


def _check_address(address: str, where: str) -> None:
    if not address.startswith(("https://", "http://")):
        raise NoCredentials(f"{where}: the cluster's server is not an http(s) address: {address[:80]!r}")
    try:
        parts = urlsplit(address)
        is_one = bool(parts.hostname) and (parts.port is None or parts.port > 0) and address.isprintable()
    except ValueError:
        is_one = False
    if not is_one or " " in address:
        raise NoCredentials(f"{where}: not the address of a server")


def proxy_of(url: str, where: str) -> str:
    """The URL of a proxy, if it is one that can be used. Its user and password are in no message."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_one = False
    if url and not is_one:
        raise NoCredentials(f"{where}: not an http(s) proxy; others are not supported")
    return url


def _material(entry: _Entry, key: str, file: str | None, data: str | None) -> Material | None:
    if file and data:
        raise NoCredentials(f"{entry.at}: {key} and {key}-data exclude each other")
    if file:
        return Material(f"{entry.at}.{key}", file=entry.file.parent / file)
    if not data:
        return None
    try:
        return Material(f"{entry.at}.{key}-data", base64.b64decode("".join(data.split()), validate=True))
    except (binascii.Error, ValueError):
        raise NoCredentials(f"{entry.at}.{key}-data: not base64") from None


# -- the user


def _access(context: str, server: Server, entry: _Entry) -> Access:
    if isinstance(entry.values, dict) and entry.values.get("auth-provider") is not None:
        raise NoCredentials(f"{entry.at}.auth-provider: is not supported; an exec plug-in takes its place")
    values = _converted(entry.values, _User, entry.at)
    certificate = _material(entry, "client-certificate", values.client_certificate, values.client_certificate_data)
    key = _material(entry, "client-key", values.client_key, values.client_key_data)
    if (certificate is None) != (key is None):
        raise NoCredentials(f"{entry.at}: client-certificate and client-key need each other")
    token = None
    if values.token:
        token = Material(f"{entry.at}.token", values.token.encode())
    if values.token_file:  # of both the file, as for kubectl
        token = Material(f"{entry.at}.tokenFile", file=entry.file.parent / values.token_file)
    basic = f"{values.username or ''}:{values.password or ''}" if values.username or values.password else ""
    if token is not None and basic:
        raise NoCredentials(f"{entry.at}: token and username exclude each other")
    return Access(
        context,
        server,
        token,
        basic,
        certificate,
        key,
        _plugin(values.exec, entry),
        f"{entry.at}.exec",
        _impersonation(values, entry.at),
    )


def _plugin(plugin: Plugin | None, entry: _Entry) -> Plugin | None:
    """The plug-in with its command as it is run: a path is relative to the file, a bare name is looked up."""
    if plugin is None:
        return None
    if not plugin.command:
        raise NoCredentials(f"{entry.at}.exec.command: is not set")
    if os.sep not in plugin.command:
        return plugin
    return msgspec.structs.replace(plugin, command=str((entry.file.parent / plugin.command).absolute()))


def _impersonation(values: _User, at: str) -> tuple[tuple[str, str], ...]:
    rest = [("Impersonate-Group", group) for group in values.as_groups or ()]
    if values.as_uid:
        rest.append(("Impersonate-Uid", values.as_uid))
    for key, each in (values.as_user_extra or {}).items():
        name = f"Impersonate-Extra-{quote(key, safe='!#$&*+-.^_`|~' + chr(39))}"
        rest += [(name, value) for value in each]
    if rest and not values.impersonate:
        raise NoCredentials(f"{at}: as-uid, as-groups and as-user-extra need `as`")
    if not values.impersonate:
        return ()
    headers = (("Impersonate-User", values.impersonate), *rest)
    if not all(value.isprintable() for _, value in headers):
        raise NoCredentials(f"{at}: control characters in what is impersonated")
    return headers


# -- a pod


def of_pod(environ: Mapping[str, str], token_file: str, ca_file: str) -> Access:
    """The account of the pod that this process runs in. The kubelet replaces the token file now and then. Raises
    `NoCredentials`."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise NoCredentials("in this pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    address = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    _check_address(address, "in this pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT")
    token, authority = (Material("in this pod", file=Path(file)) for file in (token_file, ca_file))
    for one in (token, authority):
        if not one.read().strip():
            raise NoCredentials(f"in this pod: {one.file} is empty")
    return Access("", Server(address, authority, True, None, "", False, None), token)
