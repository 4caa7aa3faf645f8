"""What is decided and said in the golden scenarios is what their digests say."""

from __future__ import annotations

import pytest

from golden import digests
from golden.playing import play
from golden.scenarios import groups

CHUNK = 10
GROUPS = groups()
CHUNKS = [(group, first) for group, names in GROUPS.items() for first in range(0, len(names), CHUNK)]


@pytest.mark.parametrize(("group", "first"), CHUNKS, ids=lambda part: str(part))
def test_decides_and_says_what_it_did(group: str, first: int) -> None:
    rows = digests.read(group)
    differing = []
    for name, text_of in list(GROUPS[group].items())[first : first + CHUNK]:
        text = text_of()
        why = digests.difference(rows.get(name), digests.row_of(text, play(text)))
        if why:
            differing.append(f"{name} ({why}): {advice(name, why)}")
    assert not differing, "\n" + "\n".join(differing)


def advice(name: str, why: str) -> str:
    """What to do about a scenario that differs."""
    rewrite = f"`make golden ONLY='{name}'` if it is meant; the commit names the scenario and the rule"
    if why == "new":
        return f"it has no digests: `make golden ONLY='{name}'`"
    if why.startswith("scenario"):
        return f"its file, or the oracle's generator, is another one, which alone says nothing of the engine: {rewrite}"
    return f"`make golden-diff BASE=HEAD ONLY='{name}'` shows it; {rewrite}"


def test_no_digests_of_scenarios_that_are_gone() -> None:
    unused = [name for group, names in GROUPS.items() for name in digests.read(group) if name not in names]
    unused += sorted(digests.groups() - set(GROUPS))
    assert not unused, f"no scenarios of these names: {', '.join(unused)}; `make golden` removes them"
