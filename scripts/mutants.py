"""Mutation testing of the engine, by sample: which changes of its code does no test notice?

mutmut finds the places and makes most of the changes; that of calls' arguments and of texts is left out, since nearly
all of it dies by a crash. Added are those by which rules are lost: a statement dropped, a condition negated, a term of
`and` or `or` dropped. A sample, drawn with a printed seed, is tried: each mutant in a copy of `src` of its own, first
against the tests of its package, then against all rules, unit tests and scenarios, until one fails. What survives is
printed as a diff: it is a missing test, or a change that changes nothing.

    make mutants                                    40 mutants of the engine
    make mutants SAMPLE=10 SEED=7 ONLY=claims       of one package, the same ones again
"""

from __future__ import annotations

import argparse
import difflib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation import file_mutation, mutators, pragma_handling

ROOT = Path(__file__).parent.parent
ENGINE = ROOT / "src" / "enbloc" / "engine"
LIMIT_S = 900
"""A mutant that runs this long loops, or waits for ever, or the machine is slow: such mutants are counted apart."""

FIRST: dict[str, tuple[str, ...]] = {
    "claims": ("rules/test_narrow_conditions.py", "rules/test_k_holds.py", "rules/test_d_waves.py", "rules/test_r*.py"),
    "eviction": ("rules/test_p*.py", "rules/test_narrow_conditions.py"),
    "filters": ("engine/filters", "rules/test_g6_predicates.py"),
    "forecast": ("rules/test_r8_run_times.py", "rules/test_r*.py"),
    "placement": ("engine/test_headroom_and_kernels.py", "engine/test_packing.py", "rules/test_g*.py"),
    "queueing": ("engine/queueing", "rules/test_g8_order.py", "rules/test_g9_nothing_twice.py"),
    "scoring": ("engine", "rules/test_c_config.py"),
    "tables": ("engine", "rules/test_v4_*.py"),
}
"""Packages of the engine → tests that most likely notice a change there."""
KILLED, SURVIVED, TIMED_OUT = "killed", "SURVIVED", "timed out"
ALL = ("engine", "rules", "gangs", "test_scenarios.py", "test_examples.py")


# ---- mutants


def _drop_statement(node: cst.SimpleStatementLine) -> Iterable[cst.SimpleStatementLine]:
    """A statement that is a call is there for what it does."""
    if len(node.body) == 1 and isinstance(node.body[0], cst.Expr) and isinstance(node.body[0].value, cst.Call):
        yield node.with_changes(body=[cst.Pass()])


def _negate(node: cst.If) -> Iterable[cst.If]:
    bracketed = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(
        test=cst.UnaryOperation(cst.Not(), bracketed), whitespace_before_test=cst.SimpleWhitespace(" ")
    )


def _drop_term(node: cst.BooleanOperation) -> Iterable[cst.BaseExpression]:
    yield from (node.left, node.right)


NOISY = {"operator_arg_removal", "operator_string", "operator_assignment", "operator_dict_arguments", "operator_lambda"}
OPERATORS = [
    *((kind, make) for kind, make in mutators.mutation_operators if make.__name__ not in NOISY),
    (cst.SimpleStatementLine, _drop_statement),
    (cst.If, _negate),
    (cst.BooleanOperation, _drop_term),
]


ASSERTS = re.compile(r"^-.*(\bassert\b|strict=True)", re.MULTILINE)
"""Lines that check the code itself: a change of them is no change of behaviour."""


class Mutant(NamedTuple):
    path: Path
    line: int
    code: str
    diff: str

    @property
    def title(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


@cache
def _mutations(path: Path) -> tuple[MetadataWrapper, list[file_mutation.Mutation]]:
    code = path.read_text()
    wrapper = MetadataWrapper(cst.parse_module(code))
    visitor = file_mutation.MutationVisitor(OPERATORS, pragma_handling.get_ignored_lines(str(path), code, wrapper))
    wrapper.visit(visitor)
    return wrapper, visitor.mutations


def _mutant(path: Path, number: int) -> Mutant:
    wrapper, mutations = _mutations(path)
    found = mutations[number]
    code, place = wrapper.module.code, wrapper.resolve(PositionProvider).get(found.original_node)
    mutated = wrapper.module.deep_replace(found.original_node, found.mutated_node).code
    lines = difflib.unified_diff(code.splitlines(), mutated.splitlines(), lineterm="", n=1)
    return Mutant(path, place.start.line if place else 0, mutated, "\n".join(list(lines)[2:]))


def sample(only: str, size: int, seed: int) -> list[Mutant]:
    """The same mutants for the same code and seed. A module is drawn by its length, then a mutant of it: to look for
    all mutants of all modules would take minutes."""
    modules = [path for path in sorted(ENGINE.rglob("*.py")) if only in str(path.relative_to(ENGINE))]
    lengths = [len(path.read_text().splitlines()) for path in modules]
    dice = random.Random(seed)
    found: dict[tuple[Path, int], Mutant] = {}
    for _ in range(10 * size):
        if len(found) == size:
            break
        path = dice.choices(modules, lengths)[0]
        count = len(_mutations(path)[1])
        key = (path, dice.randrange(count)) if count else (path, -1)
        if count and key not in found:
            mutant = _mutant(*key)
            if not ASSERTS.search(mutant.diff):
                found[key] = mutant
    print(f"{len(found)} mutants of {len(modules)} modules, seed {seed}", flush=True)
    return list(found.values())


# ---- trials


def _tests(*patterns: str) -> list[str]:
    return [str(path) for pattern in patterns for path in sorted((ROOT / "tests").glob(pattern))]


def _fails(source: Path, tests: list[str], until: float) -> bool:
    """Whether a test fails on this copy of the source; raises `subprocess.TimeoutExpired` after too long."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-m",
        "not soak and not e2e and not web and not helm and not node and not operators",
        "-p",
        "no:cacheprovider",
    ]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*command, "-p", "no:xdist", "--hypothesis-seed=0", *tests],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        timeout=max(1.0, until - time.monotonic()),
    )
    return done.returncode != 0


def fate(mutant: Mutant) -> str:
    until = time.monotonic() + LIMIT_S
    package = mutant.path.relative_to(ENGINE).parts[0]
    with tempfile.TemporaryDirectory(prefix="enbloc-mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        (source / mutant.path.relative_to(ROOT / "src")).write_text(mutant.code)
        likely = _tests(*FIRST.get(package, ("rules/test_narrow_conditions.py", "rules/test_g*.py")))
        try:
            lives = not _fails(source, likely, until) and not _fails(source, _tests(*ALL), until)
        except subprocess.TimeoutExpired:
            return TIMED_OUT
        return SURVIVED if lives else KILLED


def main() -> int:
    arguments = argparse.ArgumentParser(description="Try a sample of the engine's mutants against the tests.")
    arguments.add_argument("--sample", type=int, default=40, help="how many mutants are tried (40)")
    arguments.add_argument("--seed", type=int, default=None, help="which ones; drawn and printed if not given")
    arguments.add_argument("--only", default="", help="only modules whose path in the engine contains this")
    arguments.add_argument("--jobs", type=int, default=2, help="how many are tried at a time (2)")
    given = arguments.parse_args()
    seed = random.randrange(10_000) if given.seed is None else given.seed
    chosen = sample(given.only, given.sample, seed)
    fates: dict[str, list[Mutant]] = {KILLED: [], SURVIVED: [], TIMED_OUT: []}
    with ThreadPoolExecutor(given.jobs) as pool:
        for mutant, found in zip(chosen, pool.map(fate, chosen), strict=True):
            print(f"{found:9}  {mutant.title}", flush=True)
            fates[found].append(mutant)
    counts = ", ".join(f"{len(mutants)} {name}" for name, mutants in fates.items() if mutants)
    print(f"\n{len(chosen)} mutants: {counts} (seed {seed}).")
    for mutant in [*fates[SURVIVED], *fates[TIMED_OUT]]:
        print(f"\n{mutant.title}\n{mutant.diff}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
