"""The shares of the processors that workers keep to, and the priorities of their threads."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.sharing.processors import Niceness, lower_priority, share


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


@pytest.mark.skipif(sys.platform != "linux", reason="only there a thread has a priority of its own")
def test_a_thread_stands_back_and_one_that_stands_back_further_stays_there() -> None:
    """A gateway under ``nice`` that is not root may not raise a priority: its pools would be broken."""

    def stood_back(*steps: Niceness) -> int:
        for each in steps:
            lower_priority(each)
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(stood_back, Niceness.BULK_WORK).result() == 19
        assert pool.submit(stood_back, Niceness.BULK_WORK, Niceness.SHORT_WORK).result() == 19
