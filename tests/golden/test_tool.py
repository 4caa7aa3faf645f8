"""The tools themselves: an engine that says something else is found, its lines are shown, and only what was asked for
is rewritten."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from golden import __main__ as tool
from golden import digests, test_golden
from golden.digests import Row
from golden.playing import Played, play
from golden.scenarios import ROOT, text_named

NAME = "examples/problems/waits"
SENTENCE = "nodes are available"
"""As `engine/` has it, in what gangs say that find no room."""


@pytest.fixture(scope="module")
def changed_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product, with one sentence that is another one."""
    tree = tmp_path_factory.mktemp("changed")
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
    changed = 0
    for file in (tree / "src" / "enbloc" / "engine").rglob("*.py"):
        text = file.read_text()
        changed += text.count(SENTENCE)
        file.write_text(text.replace(SENTENCE, "nodes would do"))
    assert changed
    return tree


def test_an_engine_that_says_something_else_is_found(changed_tree: Path) -> None:
    text = text_named(NAME)
    (changed,) = tool.play_share([text], changed_tree)
    row = digests.read("examples")[NAME]
    assert digests.difference(row, digests.row_of(text, play(text))) == ""
    assert digests.difference(row, digests.row_of(text, changed)) == "sentences"


def test_what_differs_from_another_revision_is_shown(changed_tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = "scenarios/topology-kai"
    tool.show({name: text_named(name) for name in (NAME, same)}, "BASE", changed_tree, 2)
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == [f"--- {NAME} sentences at BASE", f"+++ {NAME} sentences in the working tree"]
    gone = [line[1:] for line in shown[2:] if line.startswith("-")]
    come = [line[1:] for line in shown[2:] if line.startswith("+")]
    assert gone
    assert [line.replace("nodes would do", SENTENCE) for line in gone] == come
    assert shown[-1] == "1 of 2 scenarios differ from BASE"


def test_a_worktree_of_a_revision_is_made_and_removed() -> None:
    with tool.worktree("HEAD") as tree:
        assert (tree / "src" / "enbloc" / "engine").is_dir()
    assert not tree.exists()


def test_each_text_is_played_once_in_the_order_in_which_it_was_given() -> None:
    names = ["jobs/0", "jobs/1", "jobs/2"]
    texts = [text_named(name) for name in names]
    assert tool.play_all(texts, 2) == [play(text) for text in texts]


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_what_happens_does_not_depend_on_the_hash_seed(monkeypatch: pytest.MonkeyPatch, hash_seed: str) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", hash_seed)
    texts = {name: text_named(name) for name in ("all/0", "tenants/0", "usage/0", "trees/0")}
    for (name, text), played in zip(texts.items(), tool.play_share(list(texts.values()), ROOT), strict=True):
        assert digests.read(name.partition("/")[0])[name] == digests.row_of(text, played), name


def test_an_engine_that_raises_is_shown_and_not_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(digests, "FOLDER", tmp_path)
    monkeypatch.setattr(tool, "play_all", lambda texts, jobs: [Played([], [], "ZeroDivisionError: by zero")])
    assert tool.rewrite({"jobs/0": text_named("jobs/0")}, 1) == 1
    assert "jobs/0 raised:\nZeroDivisionError: by zero" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


# ---- make golden


A, B, C = (Row("scenario", letter * 12, "sentences") for letter in "abc")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows of two scenarios of one group, and of one that is gone."""
    monkeypatch.setattr(digests, "read", lambda group: read(group, tmp_path))
    monkeypatch.setattr(digests, "write", lambda group, rows: write(group, rows, tmp_path))
    monkeypatch.setattr(digests, "groups", lambda: files(tmp_path))
    monkeypatch.setattr(tool, "groups", lambda: {"jobs": {"jobs/0": str, "jobs/1": str}})
    monkeypatch.setattr(tool, "play_all", lambda texts, jobs: [Played(["decided"], ["said"]) for _ in texts])
    write("jobs", {"jobs/0": A, "jobs/1": B, "jobs/2": C}, tmp_path)
    write("old", {"old/0": A}, tmp_path)
    return tmp_path


read, write, files = digests.read, digests.write, digests.groups
PLAYED = digests.row_of("", Played(["decided"], ["said"]))


def test_one_scenario_is_rewritten_and_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.rewrite({"jobs/1": ""}, 1) == 0
    assert read("jobs", folder) == {"jobs/0": A, "jobs/1": PLAYED}
    assert capsys.readouterr().out.splitlines() == [
        "jobs/1: scenario, decisions, sentences",
        "jobs/2: gone",
        "old/0: gone",
        "1 scenarios were played, 3 rows changed",
    ]
    assert files(folder) == {"jobs"}


def test_all_are_rewritten(folder: Path) -> None:
    assert tool.rewrite({"jobs/0": "", "jobs/1": ""}, 1) == 0
    assert read("jobs", folder) == {"jobs/0": PLAYED, "jobs/1": PLAYED}


# ---- make test


def test_rows_of_scenarios_that_are_gone_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_golden, "GROUPS", {**test_golden.GROUPS, "jobs": {"jobs/0": str}})
    with pytest.raises(AssertionError, match=r"no scenarios of these names: .*jobs/2"):
        test_golden.test_no_digests_of_scenarios_that_are_gone()


@pytest.mark.parametrize(
    "row, message",
    [
        (None, "found/x (new): it has no digests: `make golden ONLY='found/x'`"),
        (Row("other", "", ""), "found/x (scenario): its file, or the oracle's generator, is another one"),
        (Row("", "other", ""), "found/x (decisions): `make golden-diff BASE=HEAD ONLY='found/x'` shows it"),
    ],
)
def test_a_scenario_that_differs_is_named_with_the_command_that_shows_it(
    row: Row | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened = Played(["decided"], ["said"])
    same = digests.row_of("text", happened)
    rows = {} if row is None else {"found/x": Row(*(new or old for new, old in zip(row, same, strict=True)))}
    monkeypatch.setattr(digests, "read", lambda group: rows)
    (said,) = digests.differing("found", [("found/x", "text", happened)])
    assert said.startswith(message)
