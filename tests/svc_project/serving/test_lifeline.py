"""What the parent of ``serve`` learns from a child."""

from __future__ import annotations

import os

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
