"""What is decided and said in the golden scenarios is what their digests say. Those that the oracle plays, too, are in
`oracle/test_oracle.py`: the engine plays them once."""

from __future__ import annotations

import pytest

from golden import digests
from golden.playing import play
from golden.scenarios import groups

CHUNK = 10
GROUPS = groups()
CHUNKS = [(group, first) for group in ("scenarios", "examples") for first in range(0, len(GROUPS[group]), CHUNK)]


@pytest.mark.parametrize(("group", "first"), CHUNKS, ids=lambda part: str(part))
def test_decides_and_says_what_it_did(group: str, first: int) -> None:
    texts = {name: text_of() for name, text_of in list(GROUPS[group].items())[first : first + CHUNK]}
    assert digests.differing(group, ((name, text, play(text)) for name, text in texts.items())) == []


def test_no_digests_of_scenarios_that_are_gone() -> None:
    unused = [name for group, names in GROUPS.items() for name in digests.read(group) if name not in names]
    unused += sorted(digests.groups() - set(GROUPS))
    assert not unused, f"no scenarios of these names: {', '.join(unused)}; `make golden` removes them"
