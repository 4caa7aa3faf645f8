"""The statuses of a task: a change that is in the table is made and noted, any other raises with the gang's story."""

from __future__ import annotations

from itertools import product

import pytest

from enbloc.config import parse
from enbloc.engine.core.state.task_counts import ALLOWED, ImpossibleTransition, transition
from enbloc.engine.core.tables.tasks import STORY_LENGTH, Task, TaskStatus
from support import manifests as m
from support.direct_scheduler import DirectScheduler


def pending() -> tuple[DirectScheduler, Task]:
    direct = DirectScheduler(parse(None))
    direct.put(m.node("n", 4))
    direct.engine.state.settle()
    direct.put(m.pod("p", 1))
    (task,) = direct.engine.state.tasks.values()
    return direct, task


@pytest.mark.parametrize(("before", "after"), list(product(TaskStatus, TaskStatus)), ids=lambda status: status.name)
def test_a_change_is_made_if_the_table_has_it(before: TaskStatus, after: TaskStatus) -> None:
    _, task = pending()
    task.status = before
    if after in ALLOWED.get(before, ()):
        transition(task, after, "n")
        assert (task.status, task.node) == (after, "n")
        assert f"p {before.name} → {after.name} n" in task.gang.story
    else:
        with pytest.raises(ImpossibleTransition, match=f"cannot become {after.name}; story of "):
            transition(task, after, "n")
        assert (task.status, task.node) == (before, "")


def test_an_impossible_change_tells_what_happened_before() -> None:
    direct, task = pending()
    direct.engine.state.nominate(task, "n")
    direct.engine.state.unreserve(task)
    with pytest.raises(ImpossibleTransition, match=r"p PENDING → NOMINATED n; p NOMINATED → PENDING$"):
        transition(task, TaskStatus.BOUND, "n")


def test_the_story_has_the_last_things_only() -> None:
    direct, task = pending()
    for _ in range(STORY_LENGTH):
        direct.engine.state.nominate(task, "n")
        direct.engine.state.unreserve(task)
    assert task.gang.story.count("→") == STORY_LENGTH
    direct.engine.state.validate()


def test_the_story_tells_why_a_gang_waits_and_what_the_api_says() -> None:
    direct, task = pending()
    direct.put(m.pod("big", 9))
    direct.engine.run(0)
    big = next(gang for gang in direct.engine.state.gangs.values() if gang.key.name == "big")
    assert "waits: Unschedulable" in big.story
    assert "is bound with 1 pods" in task.gang.story
