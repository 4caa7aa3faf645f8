"""What callers may pass: manifests as paths or objects; a config as a file, a mapping, or a policy's name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from enbloc.config import Config, parse
from enbloc.config.policies import POLICIES, policy_config
from enbloc.scenario.documents import Document, read_documents, read_mapping
from enbloc.scenario.scenario import Scenario, read_scenario
from enbloc.up.options import parse_resources

Manifest = str | os.PathLike[str] | Mapping[str, Any]
"""A file, a directory, or an object as a YAML loader gives it."""
Manifests = Manifest | Iterable[Manifest]
ConfigLike = None | str | os.PathLike[str] | Mapping[str, Any] | Config | Callable[[Any], tuple[Any, ...]]
"""A function orders the gangs of a queue: `fifo-skip` with its key after priority."""
OBJECTS = "objects"
"""Stands for the file's name in a message about an object that was passed."""


def scenario_of(manifests: Manifests) -> Scenario:
    """Raises `BadInput` with every fault, that a file cannot be read among them."""
    if isinstance(manifests, str | os.PathLike | Mapping):
        manifests = (manifests,)
    documents: list[Document] = []
    number = 0
    for manifest in manifests:
        if isinstance(manifest, Mapping):
            number += 1
            documents.append(Document(OBJECTS, number, dict(manifest)))
        else:
            documents.extend(read_documents([os.fspath(manifest)]))
    return read_scenario(documents)


def amounts_of(resources: Mapping[str, str | int] | None) -> dict[str, str] | None:
    """Amounts as Kubernetes writes them. Raises `ValueError` for one that is none."""
    if resources is None:
        return None
    return parse_resources(",".join(f"{name}={amount}" for name, amount in resources.items()))


def config_of(config: ConfigLike, plugins: Sequence[object] = ()) -> Config:
    """Raises `ConfigError` with every problem of a mapping or file, `ValueError` for a name that is neither."""
    found = _config(config)
    given = (*found.plugins_in_code, *plugins)
    return msgspec.structs.replace(found, plugins_in_code=given) if plugins else found


def _config(config: ConfigLike) -> Config:
    if isinstance(config, Config):
        return config
    if callable(config):
        return msgspec.structs.replace(policy_config("fifo-skip"), plugins_in_code=(config,))
    if config is None or isinstance(config, Mapping):
        return parse(dict(config or {}))
    if isinstance(config, str) and config in POLICIES:
        return policy_config(config)
    if not Path(config).exists():
        raise ValueError(f"config {os.fspath(config)!r} is neither a file nor one of {', '.join(POLICIES)}")
    return parse(read_mapping(os.fspath(config)))
