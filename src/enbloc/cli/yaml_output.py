"""YAML on stdout or into a file, as people read it: keys in order, no aliases, texts of several lines as blocks."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO

from enbloc.api.meta import Obj


def print_yaml(objects: Iterable[Obj], out: TextIO | None = None, **options: Any) -> None:
    """One document per object, on stdout unless `out` is given. `options` are those of `yaml.dump_all`."""
    import yaml  # imported late: help must be fast

    class Dumper(yaml.CSafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

    def text(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    yaml.dump_all(objects, out or sys.stdout, Dumper=Dumper, sort_keys=False, allow_unicode=True, **options)
