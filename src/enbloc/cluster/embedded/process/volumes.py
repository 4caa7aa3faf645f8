"""A pod's volumes as directories, and the mounts of a container as links to them.

Mounting needs privileges, so nothing is mounted: each container has a root directory, in which every mount path is a
link to its volume. A container starts in that directory (or in its `workingDir` below it), so that `etc/config/key` is
what `/etc/config/key` would be; and `ENBLOC_MOUNT_<NAME>` is each volume's directory. Nothing is read-only, and files
from ConfigMaps and Secrets are not updated while the pod runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from enbloc.api.meta import Obj, namespace_of
from enbloc.api.pod_amounts import Amounts
from enbloc.cluster.embedded.process.environment import Environment
from enbloc.cluster.embedded.process.fields import ContainerConfigError, field, resource
from enbloc.units import is_dns_label, is_dns_subdomain

MOUNT: Final = "ENBLOC_MOUNT_"
_SOURCES: Final = ("emptyDir", "configMap", "secret", "downwardAPI", "projected", "hostPath", "persistentVolumeClaim")

Resolve = Callable[[str], str]
"""Replaces host names by addresses."""


class Volumes:
    """Creates the volumes of pods. Claims are kept beside the pods and outlive them."""

    def __init__(self, environment: Environment, claims: Path) -> None:
        self._environment = environment
        self._claims = claims

    def make(self, pod: Obj, at: Path, resolve: Resolve, address: str, allocatable: Amounts) -> dict[str, Path]:
        """The directory (or file) of each volume by its name. Raises `ContainerConfigError`."""
        made = {}
        for volume in pod["spec"].get("volumes") or ():
            name = str(volume.get("name") or "")
            if not is_dns_label(name):
                raise ContainerConfigError(f"{name!r} is not a valid name of a volume")
            made[name] = self._make(pod, volume, at / name, resolve, address, allocatable)
        return made

    def _make(
        self, pod: Obj, volume: dict[str, Any], at: Path, resolve: Resolve, address: str, allocatable: Amounts
    ) -> Path:
        kind = next((key for key in _SOURCES if key in volume), None)
        source = volume.get(kind or "") or {}
        match kind:
            case "emptyDir":
                at.mkdir(parents=True, exist_ok=True)
            case "hostPath":
                return _host_path(source)
            case "persistentVolumeClaim":
                claim = str(source.get("claimName") or "")
                if not is_dns_subdomain(claim):
                    raise ContainerConfigError(f"{claim!r} is not a valid name of a claim")
                at = self._claims / namespace_of(pod) / claim
                at.mkdir(parents=True, exist_ok=True)
            case None:
                other = next((key for key in volume if key != "name"), "nothing")
                raise ContainerConfigError(f"volume {volume['name']} has a type ({other}) that is not supported here")
            case _:
                files = self._files(pod, kind, source, address, allocatable)
                _write(at, {path: _resolved(data, resolve) for path, data in files.items()})
        return at

    def _files(
        self, pod: Obj, kind: str, source: dict[str, Any], address: str, allocatable: Amounts
    ) -> dict[str, bytes]:
        match kind:
            case "configMap":
                return self._items(pod, "ConfigMap", source, source.get("name") or "")
            case "secret":
                return self._items(pod, "Secret", source, source.get("secretName") or source.get("name") or "")
            case "downwardAPI":
                return {
                    str(item.get("path") or ""): _downward(pod, item, address, allocatable).encode()
                    for item in source.get("items") or ()
                }
        files: dict[str, bytes] = {}
        for part in source.get("sources") or ():
            for each in ("configMap", "secret", "downwardAPI"):
                if each in part:
                    files |= self._files(pod, each, part[each] or {}, address, allocatable)
        return files

    def _items(self, pod: Obj, kind: str, source: dict[str, Any], name: str) -> dict[str, bytes]:
        data = self._environment.data(pod, kind, name)
        if data is None:
            if source.get("optional"):
                return {}
            raise ContainerConfigError(f'{kind.lower()} "{name}" not found')
        items = source.get("items")
        if not items:
            return data
        files = {}
        for item in items:
            key = str(item.get("key") or "")
            if key in data:
                files[str(item.get("path") or key)] = data[key]
            elif not source.get("optional"):
                raise ContainerConfigError(f'{kind.lower()} "{name}" references non-existent config key: {key}')
        return files


class Mount(NamedTuple):
    """A volume, or a part of it, at a path of a container."""

    volume: str
    source: Path
    path: str
    read_only: bool


def mounts_of(container: dict[str, Any], volumes: dict[str, Path]) -> list[Mount]:
    """The container's mounts, by path. Raises `ContainerConfigError`."""
    found = []
    for mount in sorted(container.get("volumeMounts") or (), key=lambda mount: str(mount.get("mountPath") or "")):
        name = str(mount.get("name") or "")
        if name not in volumes:
            raise ContainerConfigError(f"there is no volume {name!r}")
        source = volumes[name]
        if mount.get("subPath"):
            source = below(source, str(mount["subPath"]))
            if not source.exists():
                source.mkdir(parents=True, exist_ok=True)
        found.append(Mount(name, source, str(mount.get("mountPath") or ""), bool(mount.get("readOnly"))))
    return found


def link_mounts(mounts: Iterable[Mount], root: Path) -> dict[str, str]:
    """Links the mount paths below the container's root; returns the variables that name the directories."""
    variables = {}
    for mount in mounts:
        place = below(root, mount.path)
        if place != root and not place.exists() and not place.is_symlink():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(mount.source)
        variables[MOUNT + re.sub(r"[^A-Z0-9]", "_", mount.volume.upper())] = str(mount.source)
    return variables


def absolute(mounts: Iterable[Mount]) -> list[tuple[str, str, bool]]:
    """Source, normal path and whether it is read-only, of the mounts that a mount namespace can have."""
    placed = ((mount, str(below(Path("/"), mount.path))) for mount in mounts)
    return [(str(mount.source), path, mount.read_only) for mount, path in placed if path != "/"]


def below(root: Path, path: str) -> Path:
    """The path below `root`; refused if dots lead out of it."""
    parts = [part for part in PurePosixPath(path).parts if part not in ("/", "//")]
    if ".." in parts:
        raise ContainerConfigError(f"{path!r} leads out of its directory")
    return root.joinpath(*parts)


def _host_path(source: dict[str, Any]) -> Path:
    path = Path(str(source.get("path") or "/"))
    if str(source.get("type") or "") == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        raise ContainerConfigError(f"hostPath {path} does not exist")
    return path.absolute()


def _downward(pod: Obj, item: dict[str, Any], address: str, allocatable: Amounts) -> str:
    if item.get("fieldRef"):
        return field(pod, str(item["fieldRef"].get("fieldPath") or ""), address)
    return resource(pod, {}, item.get("resourceFieldRef") or {}, allocatable)


def _resolved(data: bytes, resolve: Resolve) -> bytes:
    try:
        return resolve(data.decode()).encode()
    except UnicodeDecodeError:
        return data


def _write(directory: Path, files: dict[str, bytes]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        path = below(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(fd, "wb") as file:
            file.write(data)
