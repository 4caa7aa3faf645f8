"""`python -m oracle`: runs seeds of a layer and prints those on which engine and oracle disagree.

cd tests && ../.venv/bin/python -m oracle --layer jobs --seeds 0-1000
cd tests && ../.venv/bin/python -m oracle --layer jobs --seed 42 --verbose      # both timelines, side by side
cd tests && ../.venv/bin/python -m oracle --layer jobs --seed 42 --shrink out.yaml
cd tests && ../.venv/bin/python -m oracle --file oracle/found/NAME.yaml --verbose
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback

import yaml

from oracle import compare, families, generate, rules, shrink


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m oracle", description=__doc__)
    parser.add_argument("--layer", choices=families.LAYERS, default=families.LAYERS[0])
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", default="0-200", help="FIRST-LAST")
    parser.add_argument("--most", type=int, default=10, help="stop after so many disagreements")
    parser.add_argument("--file", help="a scenario file, with its settings in a document of kind Settings")
    parser.add_argument("--restarts", action="store_true", help="compare the engine with itself, restarted (I5)")
    parser.add_argument("--verbose", action="store_true", help="show both timelines")
    parser.add_argument("--shrink", metavar="OUT", help="write the smallest scenario that still disagrees")
    asked = parser.parse_args()
    if asked.file or asked.seed is not None:
        texts: dict[str, str] = {}
        if asked.file:
            documents, settings, texts = load(asked.file)
        else:
            documents, settings = families.scenario(asked.seed, asked.layer)
        rules.RULES_AS_OF.update(texts)
        if asked.verbose:
            show(documents, settings)
        found = compare.disagreements(documents, settings)
        print("\n".join(found) or "they agree")
        if asked.shrink and found:
            documents = shrink.smallest(documents, settings)
            with open(asked.shrink, "w") as out:
                out.write(dump(documents, settings))
            print(f"{len(documents)} documents in {asked.shrink}")
            show(documents, settings)
            print("\n".join(compare.disagreements(documents, settings)))
        return 1 if found else 0
    return many(asked)


def many(asked: argparse.Namespace) -> int:
    first, _, last = asked.seeds.partition("-")
    failures, began = 0, time.monotonic()
    for seed in range(int(first), int(last or first)):
        try:
            compared = compare.restarts if asked.restarts else compare.disagreements
            found = compared(*families.scenario(seed, asked.layer))
        except Exception:
            found = [traceback.format_exc(limit=-3)]
        if found:
            failures += 1
            print(f"{asked.layer}/{seed}: {'; '.join(found)[:600]}", flush=True)
            if failures >= asked.most:
                break
    print(f"{failures} disagreements in {seed + 1 - int(first)} seeds, {time.monotonic() - began:.1f} s")
    return 1 if failures else 0


def load(path: str) -> tuple[list[generate.Obj], generate.Obj, dict[str, str]]:
    """Documents, settings, and which rules are read by their new text; the latter two from a document `Settings`."""
    with open(path) as text:
        documents = [one for one in yaml.safe_load_all(text) if one]
    head = next((one for one in documents if one.get("kind") == "Settings"), {})
    return [one for one in documents if one is not head], head.get("settings") or {}, head.get("rules") or {}


def dump(documents: list[generate.Obj], settings: generate.Obj) -> str:
    return yaml.safe_dump_all([{"kind": "Settings", "settings": settings}, *documents], sort_keys=False)


def show(documents: list[generate.Obj], settings: generate.Obj) -> None:
    print(dump(documents, settings))
    engine, (oracle, _) = compare.both(documents, settings)
    ours, theirs = compare.by_instant(engine), compare.by_instant(oracle)
    for at in sorted({*ours, *theirs}):
        mine, other = ours.get(at, []), theirs.get(at, [])
        print(f"t={at:g}")
        for line in sorted({*mine, *other}):
            left, right = (line if line in mine else ""), (line if line in other else "")
            print(f"  {left:60} {'|' if left == right else '≠'} {right}")
    for name, result in (("engine", engine), ("oracle", oracle)):
        print(f"{name}: {result.ended}")
        for one in result.pending:
            print(f"  pending {one['gang']} missing {one['missing']}: {one['message']} {one['reasons']}")


if __name__ == "__main__":
    sys.exit(main())
