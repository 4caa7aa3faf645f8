"""The one config file of every component: read, checked as a whole, printed with its defaults.

`parse` takes what a YAML loader gives and returns a `Config`, or raises `ConfigError` with every problem in it;
`render` prints the effective file. Finding and opening the file, and showing problems, is for the command line.

    vocabulary  the names a file may use, and their meaning
    model       `Config` and its parts, with their defaults
    reading     data -> Config, or problems
    volcano     the part that is Volcano's: actions and tiers
    owner_kinds the kinds whose pods are grouped by owner
    values      single values, checked
    rendering   Config -> YAML with a comment on every key
"""

from enbloc.config.model import (
    Arbitrator,
    Config,
    Koordinator,
    Tenancy,
    Topology,
    default_scheduler_name,
    scheduler_names,
    where_alone,
)
from enbloc.config.reading import ConfigError, parse
from enbloc.config.rendering import render

__all__ = [
    "Arbitrator",
    "Config",
    "ConfigError",
    "Koordinator",
    "Tenancy",
    "Topology",
    "default_scheduler_name",
    "parse",
    "render",
    "scheduler_names",
    "where_alone",
]
