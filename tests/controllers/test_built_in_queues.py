"""The queues that are always there, on a cluster where no other component makes them."""

from __future__ import annotations

from enbloc.api.meta import Obj, name_of
from enbloc.api.volcano import BUILT_IN_QUEUES
from enbloc.api.writes import Create, Refused, WatchEvent
from enbloc.controllers.built_in_queues import BuiltInQueues
from enbloc.units import SECOND

QUEUE = "Queue.scheduling.volcano.sh"
ROOT, DEFAULT = BUILT_IN_QUEUES


def names(controller: BuiltInQueues, now: int) -> list[str]:
    writes = controller.reconcile(now)
    return [name_of(write.obj) for write in writes if isinstance(write, Create)]


def seen(controller: BuiltInQueues, obj: Obj, gone: bool = False) -> None:
    controller.observe(WatchEvent("DELETED" if gone else "ADDED", QUEUE, obj))


def test_v4_what_is_missing_is_made_once() -> None:
    controller = BuiltInQueues()
    seen(controller, DEFAULT)
    assert names(controller, 0) == ["root"]
    assert names(controller, 0) == []
    assert controller.due() is None


def test_v4_what_is_there_is_left_as_it_is() -> None:
    controller = BuiltInQueues()
    seen(controller, ROOT | {"spec": {"weight": 7}})
    seen(controller, DEFAULT)
    assert names(controller, 0) == []


def test_v4_what_was_taken_away_comes_back() -> None:
    controller = BuiltInQueues()
    for queue in BUILT_IN_QUEUES:
        seen(controller, queue)
    seen(controller, DEFAULT, gone=True)
    seen(controller, {"apiVersion": "x/v1", "kind": "Queue", "metadata": {"name": "other"}}, gone=True)
    assert names(controller, 0) == ["default"]


def test_a_refusal_is_tried_again_later_and_later() -> None:
    controller = BuiltInQueues()
    seen(controller, ROOT)
    now, waits = 0, []
    for _ in range(4):
        (write,) = controller.reconcile(now)
        controller.refused(write, Refused(500, "InternalError", "no endpoints available for service"), now)
        assert names(controller, now) == [], "never at once"
        due = controller.due()
        assert due is not None
        waits.append((due - now) // SECOND)
        now = due
    assert waits == [1, 2, 4, 8]
    assert names(controller, now) == ["default"]
    seen(controller, DEFAULT)
    assert controller.due() is None


def test_another_writer_was_faster() -> None:
    controller = BuiltInQueues()
    seen(controller, ROOT)
    (write,) = controller.reconcile(0)
    controller.refused(write, Refused(409, "AlreadyExists", "there is one"), 0)
    assert names(controller, 10 * SECOND) == []
    assert controller.due() is None
