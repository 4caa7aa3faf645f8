"""Config files as texts: what is read, or which problems they have."""

from typing import Any

import pytest
import yaml

from enbloc import config
from enbloc.config import Config, ConfigError


def parsed(text: str) -> Config:
    return config.parse(yaml.safe_load(text))


def problems(text: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parsed(text)
    return dict(caught.value.problems)


def tiers(*plugins: dict[str, Any]) -> Config:
    return config.parse({"tiers": [{"plugins": list(plugins)}]})
