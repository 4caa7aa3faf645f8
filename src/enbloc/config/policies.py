"""Scheduling policies by name: each is a config of the ordinary engine, and nothing else.

`enbloc config --policy NAME` prints one whole; `enbloc replay` compares them on a trace.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from enbloc.config.model import Config
from enbloc.config.reading import parse


class Policy(msgspec.Struct, frozen=True):
    text: str
    """What it does, in one line."""
    config: dict[str, Any]
    """The config file, as a YAML loader gives it."""


POLICIES: Final = msgspec.convert(
    yaml.load(Path(__file__).with_name("policies.yaml").read_text(), yaml.CSafeLoader), dict[str, Policy]
)


def policy_config(name: str) -> Config:
    """The config of a policy. Raises `KeyError`."""
    return parse(POLICIES[name].config)
