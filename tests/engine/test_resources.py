"""Sums of requests, by column."""

from __future__ import annotations

import pytest

from enbloc.engine.core.tables.resources import CPU, MEMORY, PODS, Request, least, total

SMALL: Request = ((CPU, 1), (PODS, 1))
LARGE: Request = ((CPU, 4), (MEMORY, 8), (PODS, 1))


@pytest.mark.parametrize(
    ("requests", "count", "expected"),
    [
        ([], 2, {}),
        ([SMALL, LARGE], 0, {CPU: 0, MEMORY: 0, PODS: 0}),
        ([SMALL, LARGE], 1, {CPU: 1, MEMORY: 0, PODS: 1}),
        ([LARGE, SMALL, LARGE], 2, {CPU: 5, MEMORY: 8, PODS: 2}),
        ([LARGE, SMALL], 3, {CPU: 5, MEMORY: 8, PODS: 2}),
    ],
)
def test_the_least_that_any_of_several_requests_come_to(
    requests: list[Request], count: int, expected: dict[int, int]
) -> None:
    assert least(requests, count) == expected


def test_a_total_has_the_columns_of_all_requests() -> None:
    assert total([SMALL, LARGE, SMALL]) == {CPU: 6, MEMORY: 8, PODS: 3}
