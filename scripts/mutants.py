"""Mutation testing of the engine, by sample: which changes of its code does no test notice?

mutmut finds the places and makes most of the changes; that of calls' arguments and of texts is left out, since nearly
all of it dies by a crash. Added are those by which rules are lost: a statement dropped, a condition negated, a term of
`and` or `or` dropped. As in mutmut, only the insides of functions change.

A sample is drawn with a printed seed. The tests of the engine, from unit tests to the oracle, run once, with a counter
at every sampled place: it says which tests reach it, and how long each takes. Then each mutant is tried in a fork of
this process in which the code of the changed function is exchanged, against the tests that reach it, quick ones first,
until one fails. What survives is printed as a diff: it is a missing test, or a change that changes nothing.

    make mutants                                    40 mutants of the engine
    make mutants SAMPLE=10 SEED=7 ONLY=claims       of one package, the same ones again
    make mutants ONLY=claims TESTS=engine/claims    which of them do these tests alone kill?
"""

from __future__ import annotations

import argparse
import ast
import builtins
import difflib
import gc
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation import file_mutation, mutators, pragma_handling

ROOT = Path(__file__).parent.parent
ENGINE = ROOT / "src" / "enbloc" / "engine"
LIMIT_CPU_S = 60
"""A mutant whose tests take this much longer than without it, and three times as long, loops: counted apart."""
NOTE_EVERY_S = 20
TESTS = "engine rules gangs test_scenarios.py test_situations.py test_restarts.py sim properties oracle"
NOT_RUN = "not soak and not e2e and not web and not helm and not node and not operators"
KILLED, SURVIVED, TIMED_OUT, NOT_REACHED, BROKEN = "killed", "SURVIVED", "TIMED OUT", "NO TEST", "BROKEN"
_EXITS = {KILLED: 10, SURVIVED: 11, NOT_REACHED: 12, TIMED_OUT: -signal.SIGXCPU}
"""Exit statuses of the forks; any other is a mistake of this script."""


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
    return wrapper, [found for found in visitor.mutations if _is_in_body(wrapper, found)]


def _is_in_body(wrapper: MetadataWrapper, found: file_mutation.Mutation) -> bool:
    """A trial exchanges code of functions: defaults of arguments and of fields were evaluated before."""
    function, places = found.contained_by_top_level_function, wrapper.resolve(PositionProvider)
    place = places.get(found.original_node)
    return isinstance(function, cst.FunctionDef) and (
        place is None or place.start.line >= places[function.body].start.line
    )


def _mutant(path: Path, number: int) -> Mutant:
    wrapper, mutations = _mutations(path)
    found = mutations[number]
    code, place = wrapper.module.code, wrapper.resolve(PositionProvider).get(found.original_node)
    mutated = wrapper.module.deep_replace(found.original_node, found.mutated_node).code
    lines = difflib.unified_diff(code.splitlines(), mutated.splitlines(), lineterm="", n=1)
    return Mutant(path, place.start.line if place else 0, mutated, "\n".join(list(lines)[2:]))


def _compiles(mutant: Mutant) -> bool:
    """A term that is dropped may take the brackets with it that joined two lines."""
    try:
        compile(mutant.code, str(mutant.path), "exec")
    except SyntaxError:
        return False
    return True


def sample(only: str, size: int, seed: int) -> list[Mutant]:
    """The same mutants for the same code and seed. A module is drawn by its length, then a mutant of it: to look for
    all mutants of all modules would take minutes."""
    modules = [path for path in sorted(ENGINE.rglob("*.py")) if only in str(path.relative_to(ENGINE))]
    lengths = [len(path.read_text().splitlines()) for path in modules]
    if not modules:
        sys.exit(f"no module of {ENGINE.relative_to(ROOT)} has {only!r} in its path")
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
            if not ASSERTS.search(mutant.diff) and _compiles(mutant):
                found[key] = mutant
    print(f"{len(found)} mutants of {len(modules)} modules, seed {seed}", flush=True)
    return list(found.values())


# ---- code that is exchanged in a running process


def _functions(code: CodeType) -> Iterator[CodeType]:
    """Functions of a module and methods of its classes; what is inside a function comes with it."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_flags & 0x2:  # CO_NEWLOCALS: a function, not the body of a class
                yield inner
            else:
                yield from _functions(inner)


def exchange(path: Path, code: CodeType) -> None:
    """Functions of this module run `code`, a changed version of the module, from now on."""
    changed = {(one.co_qualname, one.co_firstlineno): one for one in _functions(code)}
    found = 0
    for function in [one for one in gc.get_objects() if isinstance(one, FunctionType)]:
        old = function.__code__
        new = changed.get((old.co_qualname, old.co_firstlineno)) if old.co_filename == str(path) else None
        if new is not None and len(new.co_freevars) == len(old.co_freevars):
            function.__code__ = new
            found += 1
    assert found, f"{path}: its functions were not found; is it imported?"


def _block(node: ast.AST, line: int) -> tuple[list[ast.stmt], int] | None:
    """The innermost statement that this line belongs to: the list it stands in, and where."""
    for child in ast.iter_child_nodes(node):
        if (found := _block(child, line)) is not None:
            return found
    for _, block in ast.iter_fields(node):
        if isinstance(block, list):
            for number, one in enumerate(block):
                if isinstance(one, ast.stmt) and one.lineno <= line <= (one.end_lineno or one.lineno):
                    return block, number
    return None


def with_counters(path: Path, places: Iterable[tuple[int, int]]) -> CodeType:
    """The module, calling the builtin `reached(place)` before the statement of each (line, place)."""
    tree = ast.parse(path.read_text())
    blocks = [(place, _block(tree, line)) for line, place in places]
    for place, found in sorted(blocks, key=lambda one: one[1][1] if one[1] else 0, reverse=True):
        assert found is not None
        block, number = found
        block.insert(number, ast.copy_location(ast.parse(f"reached({place})").body[0], block[number]))
    return compile(ast.fix_missing_locations(tree), str(path), "exec")


# ---- trials


class Test(NamedTuple):
    item: pytest.Item
    seconds: float
    reached: frozenset[int]
    """Numbers of the mutants whose place it reaches."""


class Trials:
    """A plugin of pytest: instead of running the tests, tries the mutants on them."""

    def __init__(self, mutants: list[Mutant], jobs: int) -> None:
        self.fates: list[str] = []
        self._mutants = mutants
        self._jobs = jobs
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed = self._failed or report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        began = time.monotonic()
        sys.stdout = sys.__stdout__
        print(f"{len(session.items)} tests run once without a mutant, which takes some minutes", flush=True)
        tests = self._measure(session.items)
        print(f"{len(tests)} tests pass; took {time.monotonic() - began:.0f} s", flush=True)
        running: dict[int, int] = {}
        fates: dict[int, str] = {}
        for number in range(len(self._mutants)):
            while len(running) >= self._jobs:
                self._wait(running, fates)
            running[self._start(number, tests)] = number
        while running:
            self._wait(running, fates)
        self.fates = [fates[number] for number in range(len(self._mutants))]
        return True

    def _measure(self, items: list[pytest.Item]) -> list[Test]:
        """Runs all tests once, in forks: a test that changes the process should not change the mutants' tests."""
        files = sorted({item.path for item in items})
        part_of = {path: number % self._jobs for number, path in enumerate(files)}
        parts = [[item for item in items if part_of[item.path] == number] for number in range(self._jobs)]
        with tempfile.TemporaryDirectory() as folder:
            found = [Path(folder, str(number)) for number in range(self._jobs)]
            for part, path in zip(parts, found, strict=True):
                if os.fork() == 0:
                    with path.open("w") as results:
                        self._run_counted(part, results.write)
                    os._exit(0)
            for _ in parts:
                os.wait()
            lines = [path.read_text().splitlines() for path in found]
        tests = []
        for item, line in chain.from_iterable(map(zip, parts, lines)):
            passed, seconds, *reached = line.split()
            if passed == "True":
                tests.append(Test(item, float(seconds), frozenset(map(int, reached))))
            else:
                print(f"fails without any mutant: {item.nodeid}", flush=True)
        return tests

    def _run_counted(self, items: list[pytest.Item], write: Callable[[str], object]) -> None:
        reached: set[int] = set()
        setattr(builtins, "reached", reached.add)  # noqa: B010
        for path in {mutant.path for mutant in self._mutants}:
            places = [(one.line, place) for place, one in enumerate(self._mutants) if one.path == path]
            exchange(path, with_counters(path, places))
        noted = time.monotonic()
        for number, (item, following) in enumerate(zip(items, [*items[1:], None], strict=False)):
            if time.monotonic() - noted >= NOTE_EVERY_S:
                noted = time.monotonic()
                print(f"{number} of {len(items)} tests of this process ran without a mutant", flush=True)
            reached.clear()
            began = time.process_time()
            passed = self._passes(item, following)
            write(" ".join(map(str, (passed, time.process_time() - began, *sorted(reached)))) + "\n")

    def _passes(self, item: pytest.Item, following: pytest.Item | None) -> bool:
        self._failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return not self._failed

    def _start(self, number: int, tests: list[Test]) -> int:
        """The pid of a fork that tries a mutant; its exit status says what became of it."""
        if (pid := os.fork()) != 0:
            return pid
        mutant = self._mutants[number]
        chosen = sorted((test for test in tests if number in test.reached), key=lambda test: test.seconds)
        limit = int(LIMIT_CPU_S + 3 * sum(test.seconds for test in chosen))
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        exchange(mutant.path, compile(mutant.code, str(mutant.path), "exec"))
        killer = None
        for test, following in zip(chosen, [*chosen[1:], None], strict=False):
            if not self._passes(test.item, following and following.item):
                killer = test.item.nodeid
                print(f"           {mutant.title}: {killer}", flush=True)
                break
        os._exit(_EXITS[NOT_REACHED if not chosen else SURVIVED if killer is None else KILLED])

    def _wait(self, running: dict[int, int], fates: dict[int, str]) -> None:
        pid, status = os.wait()
        number = running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        fates[number] = next((fate for fate, known in _EXITS.items() if known == code), BROKEN)
        done = f"{len(fates)} of {len(self._mutants)}"
        print(f"{done:9}  {fates[number]:9}  {self._mutants[number].title}", flush=True)


def main() -> int:
    arguments = argparse.ArgumentParser(description="Try a sample of the engine's mutants against the tests.")
    arguments.add_argument("--sample", type=int, default=40, help="how many mutants are tried (40)")
    arguments.add_argument("--seed", type=int, default=None, help="which ones; drawn and printed if not given")
    arguments.add_argument("--only", default="", help="only modules whose path in the engine contains this")
    arguments.add_argument("--tests", default=TESTS, help=f"files and folders of tests/ to try them against ({TESTS})")
    arguments.add_argument("--jobs", type=int, default=2, help="how many are tried at a time (2)")
    given = arguments.parse_args()
    seed = random.randrange(10_000) if given.seed is None else given.seed
    chosen = sample(given.only, given.sample, seed)
    trials = Trials(chosen, given.jobs)
    options = "-o addopts=--import-mode=importlib --capture=sys --hypothesis-seed=0"
    unused = "-p no:cacheprovider -p no:xdist -p no:terminal"
    tests = [str(ROOT / "tests" / name) for name in given.tests.split()]
    os.chdir(ROOT)
    pytest.main([*options.split(), *unused.split(), "-m", NOT_RUN, *tests], plugins=[trials])
    counts = ", ".join(f"{count} {name}" for name, count in sorted(Counter(trials.fates).items()))
    print(f"\n{len(chosen)} mutants: {counts} (seed {seed}).")
    for mutant, found in zip(chosen, trials.fates, strict=True):
        if found != KILLED:
            print(f"\n{found}  {mutant.title}\n{mutant.diff}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
