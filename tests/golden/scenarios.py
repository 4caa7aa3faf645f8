"""The scenarios: for each group (a folder, or a layer of the oracle) names and texts.

A text is JSON: the documents, the settings of the config file, and until when it runs. It needs nothing of the product,
so that two revisions can play the same one, and its digest tells a change of the scenario from one of the engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from enbloc.scenario.documents import read_documents
from oracle import __main__ as command
from oracle import families
from support.stories import settings_of

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
SEEDS = 40
"""Of each layer these many, from 0 on: `python -m oracle` plays the same ones."""
ORACLE_UNTIL = "120s"

Text = Callable[[], str]
"""The text of one scenario, which is made when it is asked for."""


def groups() -> dict[str, dict[str, Text]]:
    """Group → name → scenario. A name begins with its group."""
    found = {
        "scenarios": of_folder("scenarios", TESTS / "scenarios", of_story),
        "examples": of_folder("examples", ROOT / "examples", of_story),
        "found": of_folder("found", TESTS / "oracle" / "found", of_found),
    }
    for layer in families.LAYERS:
        found[layer] = {f"{layer}/{seed}": partial(of_seed, layer, seed) for seed in range(SEEDS)}
    return found


def text_named(name: str) -> str:
    """The text of one scenario; of a layer also of later seeds."""
    group, _, rest = name.partition("/")
    return of_seed(group, int(rest)) if group in families.LAYERS else groups()[group][name]()


def of_folder(group: str, folder: Path, read: Callable[[Path], str]) -> dict[str, Text]:
    files = sorted(folder.rglob("*.yaml"))
    return {f"{group}/{file.relative_to(folder).with_suffix('')}": partial(read, file) for file in files}


def of_story(file: Path) -> str:
    settings, until = settings_of(file)
    return text_of([document.value for document in read_documents([str(file)])], settings, until)


def of_found(file: Path) -> str:
    documents, settings, _ = command.load(str(file))
    return text_of(documents, settings, ORACLE_UNTIL)


def of_seed(layer: str, seed: int) -> str:
    return text_of(*families.scenario(seed, layer), ORACLE_UNTIL)


def text_of(documents: list[Any], settings: dict[str, Any] | None, until: str | None) -> str:
    return json.dumps({"documents": documents, "settings": settings, "until": until})
