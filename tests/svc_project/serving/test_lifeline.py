"""What the parent of ``serve`` learns from a child."""

from __future__ import annotations

import os
import threading

import pytest

from svc_project.serving.lifeline import ParentEnd, WorkerEnd


def test_a_heartbeat_says_whether_the_child_is_ready() -> None:
    parent = ParentEnd()
    child = WorkerEnd(os.dup(parent.descriptor))
    parent.close_worker_end()

    def is_ready() -> bool:
        return parent.is_ready

    assert not parent.has_beaten()
    assert not is_ready()

    child.beat(is_ready=False)
    assert parent.has_beaten()
    assert not is_ready()

    child.beat(is_ready=False)
    child.beat()
    assert parent.has_beaten()
    assert is_ready()

    assert not parent.has_beaten()
    assert is_ready(), "a silent child is as it was"

    child.beat(is_ready=False)
    parent.has_beaten()
    assert not is_ready()
    child._socket.close()
    parent.close()


def test_a_child_that_ended_without_reading_what_it_was_told_has_no_plan() -> None:
    parent = ParentEnd()
    parent.wait()
    parent.close_worker_end()

    assert parent.plan() is None
    assert not parent.has_beaten()
    parent.close()


@pytest.mark.parametrize("waits", [False, True])
def test_a_child_waits_if_it_was_told_so_before_it_began(waits: bool) -> None:
    told, ended = threading.Event(), threading.Event()
    parent = ParentEnd()
    if waits:
        parent.wait()
    child = WorkerEnd(os.dup(parent.descriptor))
    parent.close_worker_end()
    assert child.waits is waits

    child.watch(ended.set, takes_over=told.set)
    assert not told.is_set()
    parent.accept()
    assert told.wait(60)

    parent.close()
    assert ended.wait(60)
    child._socket.close()
