"""The environment and the command line of a container's process.

Of this process's own environment only `INHERITED` is inherited: the variables of the user's shell (tokens, proxies,
settings) are not a pod's. The rest comes from the pod, as a kubelet reads it.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from enbloc.api.meta import Obj, name_of, namespace_of
from enbloc.api.pod_amounts import Amounts
from enbloc.cluster.embedded.process.fields import ContainerConfigError, field, resource

INHERITED: Final = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ")

Lookup = Callable[[str, str, str], Obj | None]
"""An object by kind, namespace and name."""

_REFERENCE: Final = re.compile(r"\$(\$|\(([^()]*)\))")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` becomes its value, `$$` a dollar; a reference to no variable stays as it is."""

    def value(found: re.Match[str]) -> str:
        if found[1] == "$":
            return "$"
        return variables.get(found[2], found[0])

    return _REFERENCE.sub(value, text)


def inherited() -> dict[str, str]:
    """The inherited variables."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


def command_line(container: dict[str, Any], variables: Mapping[str, str]) -> list[str]:
    """The command and its arguments. A command is required: images are not run."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    return [expanded(str(word), variables) for word in words]


class Environment:
    """Reads the environment of a pod's containers. Raises `ContainerConfigError`."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def of(
        self, pod: Obj, container: dict[str, Any], given: Mapping[str, str], address: str, allocatable: Amounts
    ) -> dict[str, str]:
        """The given variables, then the pod's, in order: later ones win and may refer to earlier ones."""
        variables = dict(given)
        for source in container.get("envFrom") or ():
            prefix = source.get("prefix") or ""
            for name, value in self._all_from(pod, source).items():
                if "=" not in prefix + name and "\0" not in value:
                    variables[prefix + name] = value
        for entry in container.get("env") or ():
            name = str(entry.get("name") or "")
            if not name or "=" in name or "\0" in name:
                raise ContainerConfigError(f"{name!r} is not a valid name of an environment variable")
            found = self._value(pod, container, entry, variables, address, allocatable)
            if found is not None:
                if "\0" in found:
                    raise ContainerConfigError(f"the value of {name} contains a zero byte")
                variables[name] = found
        return variables

    def data(self, pod: Obj, kind: str, name: str) -> dict[str, bytes] | None:
        """The data of a ConfigMap or Secret; `None` if it does not exist."""
        found = self._lookup(kind, namespace_of(pod), name)
        return None if found is None else _data_of(found)

    def _all_from(self, pod: Obj, source: dict[str, Any]) -> dict[str, str]:
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            ref = source.get(key)
            if ref:
                data = self.data(pod, kind, ref.get("name") or "")
                if data is not None:
                    return {key: value.decode(errors="replace") for key, value in data.items()}
                if not ref.get("optional"):
                    raise ContainerConfigError(f'{kind.lower()} "{ref.get("name")}" not found')
        return {}

    def _value(
        self,
        pod: Obj,
        container: dict[str, Any],
        entry: dict[str, Any],
        variables: Mapping[str, str],
        address: str,
        allocatable: Amounts,
    ) -> str | None:
        source = entry.get("valueFrom")
        if not source:
            return expanded(str(entry.get("value") or ""), variables)
        if "fieldRef" in source:
            return field(pod, str(source["fieldRef"].get("fieldPath") or ""), address)
        if "resourceFieldRef" in source:
            return resource(pod, container, source["resourceFieldRef"], allocatable)
        for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            if key in source:
                return self._key(pod, kind, source[key])
        raise ContainerConfigError(
            f"{name_of(pod)} has a variable {entry.get('name')} from {', '.join(source) or 'nowhere'}"
        )

    def _key(self, pod: Obj, kind: str, ref: dict[str, Any]) -> str | None:
        name, key = ref.get("name") or "", ref.get("key") or ""
        data = self.data(pod, kind, name)
        if data is not None and key in data:
            return data[key].decode(errors="replace")
        if ref.get("optional"):
            return None
        if data is None:
            raise ContainerConfigError(f'{kind.lower()} "{name}" not found')
        raise ContainerConfigError(f"couldn't find key {key} in {kind} {namespace_of(pod)}/{name}")


def _data_of(obj: Obj) -> dict[str, bytes]:
    encoded = {**(obj.get("binaryData") or {})}
    plain = {**(obj.get("stringData") or {})}
    if obj["kind"] == "Secret":
        encoded |= obj.get("data") or {}
    else:
        plain |= obj.get("data") or {}
    data = {key: str(value).encode() for key, value in plain.items()}
    for key, value in encoded.items():
        if key not in data:
            try:
                data[key] = base64.b64decode(str(value), validate=True)
            except (binascii.Error, ValueError):
                raise ContainerConfigError(f'{obj["kind"].lower()} "{name_of(obj)}": {key} is not base64') from None
    return data
