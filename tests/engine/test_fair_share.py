"""The accounts that gangs are ordered by and charged to (G12): of their namespace and user, or of their queues."""

from __future__ import annotations

import pytest

from enbloc.api.meta import Ref
from enbloc.config.model import Fair
from enbloc.engine.core.plugins.fair_share import FairShare, user_of
from enbloc.engine.core.tables.queues import ROOT, Queue
from enbloc.engine.core.tables.tasks import GangState
from enbloc.gangs.hints import SchedulingHints
from engine.gang_states import gang, task

OBJECT = Ref("PodGroup", "ns", "g")


def of_user(own: str = "", of_object: Ref | None = None, **created: int) -> GangState:
    """A gang, with the user that it names itself, and with pods: user → time of creation."""
    made = gang(hints=SchedulingHints(user=own), object=of_object)
    for user, created_ns in created.items():
        task(made, f"pod-of-{user}", created_ns=created_ns, hints=SchedulingHints(user=user))
    return made


@pytest.mark.parametrize(
    ("made", "user"),
    [
        pytest.param(of_user("x"), "x", id="its own"),
        pytest.param(of_user("x", y=0), "x", id="its own, not that of a pod"),
        pytest.param(of_user("x", OBJECT, y=0), "x", id="that of its object, not that of a pod"),
        pytest.param(of_user("", OBJECT, y=0), "", id="an object without a user: its namespace"),
        pytest.param(of_user(y=0), "y", id="that of its pod"),
        pytest.param(of_user(y=2, z=1), "z", id="that of its oldest pod"),
        pytest.param(of_user(z=1, y=1), "y", id="of pods of the same age the first by name"),
        pytest.param(of_user(), "", id="neither an object nor pods"),
    ],
)
def test_g12_the_user_of_a_gang(made: GangState, user: str) -> None:
    assert user_of(made) == user
    assert FairShare(Fair()).account_of(made) == f"ns/{user}"
    assert FairShare(Fair(by="queue")).account_of(made) == ""


def test_g12_which_accounts_a_gang_is_ordered_by_and_charged_to() -> None:
    """By queue, the root has no account: all usage is in it."""
    made = of_user("x")
    ancestors = [Queue(name, 0) for name in ("team", "org", ROOT)]
    by_user, by_queue = FairShare(Fair(shares={"ns": 3})), FairShare(Fair(by="queue"))
    accounts = [(one.queue, one.name, one.share) for one in by_user.gang_order(made)]
    assert accounts == [("default", "ns", 3), ("default", "ns/x", 1)]
    assert by_user.charged(made, ancestors) == list(by_user.gang_order(made))
    assert by_queue.gang_order(made) == ()
    assert [(one.queue, one.name) for one in by_queue.charged(made, ancestors)] == [("team", ""), ("org", "")]
    assert [one.queue for one in by_queue.all()] == ["team", "org"]
    assert by_queue.account("team", "") is by_queue.charged(made, ancestors)[0]
