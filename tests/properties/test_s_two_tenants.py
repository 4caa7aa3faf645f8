"""S1, S2: whatever tenant A writes, B's gangs start, are evicted and time out at the instants at which they do without
A, as long as room, queues and priorities are B's own.

More seeds than here: `PYTHONPATH=tests python tests/properties/test_s_two_tenants.py FIRST LAST`.
"""

from __future__ import annotations

import sys
from random import Random

import pytest

from enbloc.sim.simulation import Records
from properties import two_tenants
from support.answers import Answer
from support.manifests import Obj
from support.simulation import simulate

SEEDS = 200
PER_TEST = 10


def what_happened_to_b(documents: list[Obj], config: Obj | None, records: Records) -> list[tuple[float, str, str]]:
    """When pods of B were bound, evicted or timed out."""
    answer: Answer = simulate(documents, config=config, records=records, until=f"{two_tenants.END_S}s")
    return sorted(
        (line["t"], line["what"], line["name"])
        for line in answer.timeline
        if line.get("namespace") == "b" and line["kind"] == "Pod" and line["what"] in ("bound", "evicted", "timeout")
    )


def outcomes(seed: int, records: Records) -> tuple[list[tuple[float, str, str]], list[tuple[float, str, str]]]:
    """What happens to B without A, and with it."""
    random = Random(seed)
    config = random.choice(two_tenants.CONFIGS)
    alone = [*two_tenants.cluster(), *two_tenants.of_b(random), *two_tenants.restarts(random)]
    hostile = two_tenants.of_a(random, config)
    return what_happened_to_b(alone, config, records), what_happened_to_b([*alone, *hostile], config, records)


def check(seed: int) -> None:
    expected, found = outcomes(seed, Records.STRIPPED if seed % 4 == 0 else Records.AS_WRITTEN)
    assert found == expected, f"seed {seed}: without A {expected}, with A {found}"


@pytest.mark.parametrize("first", range(0, SEEDS, PER_TEST))
def test_s1_s2_nothing_that_a_writes_changes_what_happens_to_b(first: int) -> None:
    for seed in range(first, first + PER_TEST):
        check(seed)


def test_s1_s2_the_attacks_are_real() -> None:
    """They work where forged records are believed; and B's gangs are bound."""
    both = [outcomes(seed, Records.TRUSTED) for seed in range(20)]
    assert sum(expected != found for expected, found in both) >= 3
    assert sum(len(expected) for expected, _ in both) > 100


def main(first: int, last: int) -> int:
    failed = []
    for seed in range(first, last):
        try:
            check(seed)
        except Exception as why:
            failed.append(seed)
            print(f"seed {seed}: {type(why).__name__}: {why}", flush=True)
        if (seed + 1) % 500 == 0:
            print(f"{seed + 1 - first} runs, {len(failed)} failed", flush=True)
    print(f"seeds {first} to {last - 1}: {last - first} runs, {len(failed)} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
