"""The shares of the processors that workers keep to."""

from __future__ import annotations

import pytest

from core.sharing.processors import share


@pytest.mark.parametrize(
    ("processors", "shares"),
    [
        ([0, 1], [[0], [1]]),
        ([0, 1, 2, 3, 4], [[0, 1], [2, 3, 4]]),
        ([2, 3, 8, 9, 10], [[2], [3, 8], [9, 10]]),
        ([5], [[5]]),
    ],
)
def test_shares_are_distinct_and_of_equal_size(
    processors: list[int], shares: list[list[int]]
) -> None:
    count = len(shares)
    assert [share(processors, number, count) for number in range(count)] == shares


def test_more_workers_than_processors_share_all() -> None:
    assert [share([0, 1], number, 3) for number in range(3)] == [[0, 1]] * 3
