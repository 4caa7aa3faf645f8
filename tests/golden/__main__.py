"""`make golden` and `make golden-diff`: rewrites the digests, and shows what differs from another revision.

python -m golden write [--only 'jobs/*']
python -m golden diff --base HEAD [--only jobs/17]
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

from golden import digests
from golden.playing import Played
from golden.scenarios import ROOT, TESTS, groups


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m golden", description=__doc__)
    parser.add_argument("what", choices=("write", "diff"))
    parser.add_argument("--base", default="HEAD", help="the revision to compare with")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of scenarios: jobs/17, 'found/*'")
    parser.add_argument("--jobs", type=int, default=2, help="how many processes play")
    asked = parser.parse_args()
    texts = chosen(asked.only)
    if not texts:
        print(f"no scenario is called {asked.only}", file=sys.stderr)
        return 1
    if asked.what == "write":
        return rewrite(texts, asked.jobs)
    with worktree(asked.base) as base:
        show(texts, asked.base, base, asked.jobs)
    return 0


def chosen(pattern: str) -> dict[str, str]:
    """Name → text of the scenarios that a pattern names."""
    names = ((name, text) for group in groups().values() for name, text in group.items())
    return {name: text() for name, text in names if fnmatchcase(name, pattern)}


# ---- playing


def play_all(texts: Sequence[str], jobs: int, tree: Path = ROOT) -> list[Played]:
    """Each scenario played by the engine of a tree, `jobs` at a time."""
    shares = [texts[number::jobs] for number in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        played = list(pool.map(lambda share: play_share(share, tree), shares))
    return [played[number % jobs][number // jobs] for number in range(len(texts))]


def play_share(texts: Sequence[str], tree: Path) -> list[Played]:
    tests = tree / "tests" if (tree / "tests" / "golden" / "playing.py").exists() else TESTS
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tests}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-m", "golden.playing"]
    asked = "".join(text + "\n" for text in texts)
    done = subprocess.run(command, input=asked, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    return [Played(*json.loads(line)) for line in done.stdout.splitlines()]


# ---- make golden


def rewrite(texts: dict[str, str], jobs: int) -> int:
    """Writes the rows of these scenarios anew, removes those of scenarios that are gone, and prints which changed."""
    played = dict(zip(texts, play_all(list(texts.values()), jobs), strict=True))
    raised = {name: one.error for name, one in played.items() if one.error}
    if raised:
        print("\n".join(f"{name} raised:\n{error}" for name, error in raised.items()), file=sys.stderr)
        return 1
    digests.FOLDER.mkdir(exist_ok=True)
    changed: list[str] = []
    listed = groups()
    for group in sorted({*listed, *digests.groups()}):
        before = digests.read(group)
        now = {name: digests.row_of(texts[name], played[name]) for name in listed.get(group, ()) if name in played}
        rows = {name: row for name in listed.get(group, ()) if (row := now.get(name) or before.get(name))}
        digests.write(group, rows)
        whys = {name: digests.difference(before.get(name), rows.get(name)) for name in {**before, **rows}}
        changed += [f"{name}: {why}" for name, why in whys.items() if why]
    print("".join(f"{line}\n" for line in changed), end="")
    print(f"{len(texts):,} scenarios were played, {len(changed):,} rows changed")
    return 0


# ---- make golden-diff


@contextmanager
def worktree(revision: str) -> Iterator[Path]:
    """A revision's files, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), revision], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def show(texts: dict[str, str], revision: str, base: Path, jobs: int) -> None:
    """Prints what differs between a revision, whose files are in `base`, and the working tree."""
    before, after = (play_all(list(texts.values()), jobs, tree) for tree in (base, ROOT))
    count = 0
    for name, old, new in zip(texts, before, after, strict=True):
        lines = differing(name, old, new, revision)
        count += bool(lines)
        print("".join(f"{line}\n" for line in lines), end="")
        for tree, error in ((revision, old.error), ("the working tree", new.error)):
            print(f"{name} raised at {tree}:\n{error}" if error else "", end="")
    print(f"{count} of {len(texts):,} scenarios differ from {revision}")


def differing(name: str, old: Played, new: Played, revision: str) -> list[str]:
    """The lines of one scenario that differ, as `diff -u` shows them."""
    found: list[str] = []
    for what, before, after in (
        ("decisions", old.decisions, new.decisions),
        ("sentences", old.sentences, new.sentences),
    ):
        titles = (f"{name} {what} at {revision}", f"{name} {what} in the working tree")
        found += difflib.unified_diff(before, after, *titles, n=1, lineterm="")
    return found


if __name__ == "__main__":
    sys.exit(main())
