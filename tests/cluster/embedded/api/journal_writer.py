"""A process that writes to a journal until it is killed, and prints what it tries and what is acknowledged.

    journal_writer.py DIR SEED

`T key number state` before a write, `A key number` once it is durable. Each key goes from number to number; a state is
`here` or `gone`. Keys `x` and `y` are always written together, without a pause: no reader may see one of the two.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from enbloc.api.meta import Ref
from enbloc.cluster.embedded.api.datadir import DataDir
from enbloc.cluster.embedded.api.journal import Journal
from enbloc.cluster.embedded.api.store import Store

WRITERS = 6
KEYS = 5


def say(text: str) -> None:
    os.write(1, text.encode() + b"\n")


def number_of(store: Store, key: str) -> int:
    found = store.get("ConfigMap", "default", key)
    return int(found["data"]["number"]) if found else 0


def put(store: Store, key: str, number: int, *, filler: str) -> None:
    data = {"number": str(number), "filler": filler}
    if store.get("ConfigMap", "default", key) is None:
        obj: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key}, "data": data}
        store.create(obj)
    else:
        store.patch(Ref("ConfigMap", "default", key), {"data": data})


async def write(store: Store, journal: Journal, writer: int, seed: int, base: int) -> None:
    chance = random.Random(seed * 100 + writer)
    number = base
    while True:
        number += 1
        filler = "f" * chance.choice((1, 100, 5_000, 60_000))
        if writer == 0:
            say(f"T x {number} here")
            say(f"T y {number} here")
            put(store, "x", number, filler=filler)
            put(store, "y", number, filler=filler)
            await journal.durable()
            say(f"A x {number}")
            say(f"A y {number}")
            continue
        key = f"k-{writer}-{chance.randrange(KEYS)}"
        leave = store.get("ConfigMap", "default", key) is not None and chance.random() < 0.3
        say(f"T {key} {number} {'gone' if leave else 'here'}")
        if leave:
            store.delete(Ref("ConfigMap", "default", key))
        else:
            put(store, key, number, filler=filler)
        await journal.durable()
        say(f"A {key} {number}")
        if chance.random() < 0.2:
            await asyncio.sleep(chance.random() / 200)


async def main(directory: str, seed: int) -> None:
    store = Store(time.time_ns, auto_namespaces=True)
    journal = Journal(DataDir(Path(directory)))
    journal.restore(store)
    base = seed * 1_000_000  # numbers of a later life are higher
    await asyncio.gather(*(write(store, journal, writer, seed, base) for writer in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
