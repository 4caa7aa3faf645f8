"""What a gang says after an attempt failed (G10): each role that lacks something, and each pod of its own role."""

from __future__ import annotations

import pytest

from enbloc.engine.core.why.shortage import Refusal, Shortage, diagnosed
from enbloc.engine.decisions import Reason

CPU = Refusal("0/2 nodes are available: 2 Insufficient cpu.", (("Insufficient cpu", 2),))
GPU = Refusal("0/2 nodes are available: 2 Insufficient gpu.", (("Insufficient gpu", 2),))
QUEUE = Refusal("queue q would use 4 cpu", (("queue q would use 4 cpu", 0),), of_queue=True)


@pytest.mark.parametrize(
    ("shortages", "message", "of_roles"),
    [
        ([Shortage("", 1, 1, CPU)], f"1 of 1 pod does not fit: {CPU.text}", {}),
        ([Shortage("", 2, 3, CPU)], f"2 of 3 pods do not fit: {CPU.text}", {}),
        ([Shortage("a", 1, 3, CPU)], f"1 of 3 pods of role a does not fit: {CPU.text}", {}),
        ([Shortage("", 1, 3, CPU, True)], f"1 of 3 pods of any role does not fit: {CPU.text}", {}),
        (
            [Shortage("a", 1, 1, CPU), Shortage("b", 1, 2, CPU)],
            f"1 of 1 pod of role a and 1 of 2 pods of role b do not fit: {CPU.text}",
            {
                "a": f"1 of 1 pod of role a does not fit: {CPU.text}",
                "b": f"1 of 2 pods of role b does not fit: {CPU.text}",
            },
        ),
        (
            [Shortage("a", 1, 1, CPU), Shortage("b", 2, 2, GPU)],
            f"1 of 1 pod of role a does not fit: {CPU.text[:-1]}; 2 of 2 pods of role b do not fit: {GPU.text}",
            {
                "a": f"1 of 1 pod of role a does not fit: {CPU.text}",
                "b": f"2 of 2 pods of role b do not fit: {GPU.text}",
            },
        ),
    ],
)
def test_g10_roles_that_lack_something(shortages: list[Shortage], message: str, of_roles: dict[str, str]) -> None:
    said = diagnosed(shortages, {}, {})
    assert (said.reason, said.message, said.of_roles) == ("Unschedulable", message, of_roles)
    assert said.missing == {one.role: one.missing for one in shortages}
    assert said.reasons == tuple(Reason(one.role, *one.why.reasons[0]) for one in shortages)
    assert not said.of_queue


def test_g10_pods_of_a_role_that_fits_say_so_and_what_the_others_lack() -> None:
    said = diagnosed([Shortage("a", 1, 1, CPU)], {"b": 1, "c": 2, "a": 9}, {})
    assert said.of_roles == {
        "b": f"1 pod of role b fits, {said.message}",
        "c": f"2 pods of role c fit, {said.message}",
    }


def test_g10_pods_of_any_role_could_make_up_the_total_and_say_why_they_do_not() -> None:
    total = Shortage("", 2, 5, CPU, of_several_roles=True)
    said = diagnosed([Shortage("a", 1, 1, CPU), total], {"b": 1}, {"b": GPU})
    assert said.of_roles["b"] == f"2 of 5 pods of any role do not fit: {GPU.text} (role b)"
    assert said.missing == {"a": 1, "": 2}


@pytest.mark.parametrize(("first", "second", "full"), [(QUEUE, CPU, True), (CPU, QUEUE, False), (QUEUE, QUEUE, True)])
def test_v4_a_gang_whose_first_lack_is_its_queue_waits_for_its_queue(
    first: Refusal, second: Refusal, full: bool
) -> None:
    said = diagnosed([Shortage("a", 1, 1, first), Shortage("b", 1, 1, second)], {}, {})
    assert (said.reason, said.of_queue) == ("QueueFull" if full else "Unschedulable", full)
