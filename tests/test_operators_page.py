"""`make operators`: the page is written when a run finds something else, and a selection builds what it needs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from operators.releases import PRESENT
from operators.selection import programs_of
from operators.stories import STORIES, Story
from operators.table import Row, Table
from operators.test_operators import _of_nodes

EMPTY = "# Operators\n\n<!-- up: written by make operators -->\n<!-- up: end -->\n\nThe end.\n"


def row(name: str, waits: str = "0/1 nodes are available: 1 Too many pods.") -> Row:
    return Row(name, ("kuberay 1.6.2",), "sample.yaml", "nothing", "3 pods", waits, "a lost worker is replaced")


def written(page: Path, *rows: Row, cluster: str = "up 0.1.0") -> str:
    table = Table("up", cluster, page)
    for one in rows:
        table.add(one)
    table.write()
    return page.read_text()


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "operators.md"
    path.write_text(EMPTY)
    return path


def test_a_run_that_finds_what_is_there_leaves_the_page_as_it_is(page: Path) -> None:
    on_another_day = written(page, row("a"), row("b")).replace(", 20", ", 19")
    page.write_text(on_another_day)
    assert written(page, row("b")) == on_another_day
    assert written(page, row("a"), row("b")) == on_another_day


@pytest.mark.parametrize(
    "rows, cluster",
    [([row("a", "0/1 nodes are available: 1 Insufficient cpu.")], "up 0.1.0"), ([row("a")], "up 0.2.0")],
)
def test_a_run_that_finds_something_else_writes_it_with_its_day(page: Path, rows: list[Row], cluster: str) -> None:
    before = written(page, row("a"), row("b")).replace(", 20", ", 19")
    page.write_text(before)
    after = written(page, *rows, cluster=cluster)
    assert f"On {cluster}, 20" in after
    assert rows[0].text() in after
    assert row("b").text() in after
    assert after.endswith("\n\nThe end.\n")


def test_a_cell_says_what_does_not_depend_on_the_order_in_which_pods_came() -> None:
    of_nodes = "0/1 nodes are available: 1 Too many pods."
    assert _of_nodes(f"1 pod of role a fits, 1 of 1 pod of role b does not fit: {of_nodes}") == of_nodes
    assert _of_nodes(f"1 of 4 pods does not fit: {of_nodes} It can never start here.") == of_nodes
    assert _of_nodes("2 of 3 pods exist, 1 more is needed") == ""


def chosen(fixture: str, **parameters: Any) -> Any:
    """A test as pytest collects it."""
    return SimpleNamespace(fixturenames=[fixture, *parameters], callspec=SimpleNamespace(params=parameters))


def story(name: str) -> Story:
    return next(one for one in STORIES if one.name == name)


CLUSTER = {"kube-apiserver", "kube-controller-manager", "kubectl", "etcd", "kwok"}


@pytest.mark.parametrize(
    "items, needed",
    [
        ([chosen("local", story=story("kuberay"))], {"kubectl", "kuberay"}),
        ([chosen("local", story=story("trainer-volcano"))], {"kubectl", "trainer", "jobset"}),
        ([chosen("local", operator="training-operator-alone")], {"kubectl", "training-operator"}),
        ([chosen("world", release=PRESENT, story=story("lws-by-owner"))], CLUSTER | {"lws"}),
        ([SimpleNamespace(fixturenames=["api"])], set()),
        (
            [chosen("local", story=story("lws")), chosen("local", story=story("mpi-operator"))],
            {"kubectl", "lws", "mpi-operator"},
        ),
    ],
)
def test_a_selection_builds_what_it_needs(items: list[Any], needed: set[str]) -> None:
    assert {program.name for program in programs_of(items)} == needed
