"""What the gateway learns from refusals of a dialect that are not sent a second time."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from core.errors import BackendRejectedRequest
from core.http_client.response import Response
from inference.backends.client import ServerFailed
from inference.backends.usage_dialects import (
    MOST_REFUSED,
    QUICK_FAILURE_SECONDS,
    QUIET_SECONDS,
    UsageDialects,
)
from inference.wire.dialects import RunningUsage
from tests.inference.backends.test_usage_dialects import (
    ANSWER,
    AUTO,
    DEPLOYMENT,
    NONE,
    VLLM,
    Server,
    refused,
    stream,
)
from tests.support.clocks import Clock


def outcomes_of_a_late_server(dialects: UsageDialects, clock: Clock, streams: int) -> list[bool]:
    """Whether each stream was answered by a server that fails late in any dialect."""
    answered = []

    async def post(asked: RunningUsage) -> Response:
        if asked is NONE:
            return ANSWER
        clock.now += QUICK_FAILURE_SECONDS + 0.1
        raise ServerFailed

    for _ in range(streams):
        answered.append(False)
        with suppress(ServerFailed):
            asyncio.run(dialects.post(DEPLOYMENT, post))
            answered[-1] = True
        clock.now += QUIET_SECONDS / 2
    return answered


@pytest.mark.parametrize("proven", [False, True])
def test_a_server_that_fails_late_in_a_dialect_is_learnt(
    dialects: UsageDialects, clock: Clock, proven: bool
) -> None:
    if proven:
        assert stream(dialects, Server(VLLM)) == "auto"
        assert dialects.dialect(DEPLOYMENT) is VLLM

    answered = outcomes_of_a_late_server(dialects, clock, 60)

    assert answered.count(False) <= 12
    assert all(answered[-20:])
    assert dialects.dialect(DEPLOYMENT) is NONE


def test_wrong_requests_do_not_hide_that_a_proven_dialect_is_refused_now(
    dialects: UsageDialects,
) -> None:
    stream(dialects, Server(VLLM))
    wrong = BackendRejectedRequest("No.")
    assert refused(dialects, wrong) == [VLLM, NONE], "from here on nothing is repeated"
    for _ in range(MOST_REFUSED):
        assert refused(dialects, wrong) == [VLLM]

    assert refused(dialects, wrong) == [NONE]


def test_wrong_requests_between_others_leave_a_proven_dialect(dialects: UsageDialects) -> None:
    stream(dialects, Server(VLLM))
    wrong = BackendRejectedRequest("No.")
    refused(dialects, wrong)
    for _ in range(3):
        for _ in range(MOST_REFUSED - 1):
            assert refused(dialects, wrong) == [VLLM]
        assert stream(dialects, Server(VLLM)) == "vllm"


def test_after_the_quiet_minute_a_left_dialect_is_learnt_anew(
    dialects: UsageDialects, clock: Clock
) -> None:
    stream(dialects, Server(VLLM))
    for _ in range(MOST_REFUSED + 1):
        refused(dialects, BackendRejectedRequest("No."))
    clock.now += QUIET_SECONDS

    assert dialects.dialect(DEPLOYMENT) is AUTO
    assert stream(dialects, Server(VLLM)) == "auto"
    assert dialects.dialect(DEPLOYMENT) is VLLM
