"""What the gateway learns from streams about a model server's running usage, and for how long."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import cast

import pytest

from core.errors import BackendRejectedRequest, BackendTimeout, BackendUnavailable, ServerOverloaded
from core.http_client.response import Response
from inference.backends.client import ConnectionLost, Misconfigured, NotStarted, ServerFailed
from inference.backends.usage_dialects import (
    MOST_REMEMBERED,
    QUICK_FAILURE_SECONDS,
    QUIET_SECONDS,
    REMEMBERED_SECONDS,
    SHORTEST_VERSION_SECONDS,
    UsageDialects,
)
from inference.catalog.snapshot import DeploymentRef
from inference.wire.dialects import RunningUsage
from tests.inference.backends.test_connections import BACKEND as CONNECTED
from tests.support.clocks import Clock

AUTO, VLLM, LLAMA_CPP, NONE = (
    RunningUsage.AUTO,
    RunningUsage.VLLM,
    RunningUsage.LLAMA_CPP,
    RunningUsage.NONE,
)
BACKEND = replace(CONNECTED, running_usage=AUTO)
DEPLOYMENT = DeploymentRef(BACKEND, "demo")
ANSWER = cast("Response", object())


@dataclass(frozen=True)
class Server:
    """A model server that reports in ``speaks`` where it was asked to, and refuses ``refuses``.

    It names the parameter that it refuses, unless it is ``terse``, or it ``fails`` with 500.
    """

    speaks: RunningUsage = NONE
    refuses: frozenset[RunningUsage] = frozenset()
    terse: bool = False
    fails: bool = False

    def posted(self, asked: RunningUsage) -> Response:
        for refused in self.refuses & _each(asked):
            if self.fails:
                raise ServerFailed
            name = "timings_per_token" if refused is LLAMA_CPP else "continuous_usage_stats"
            raise BackendRejectedRequest("No." if self.terse else f"Unknown parameter: {name}.")
        return ANSWER

    def seen(self, asked: RunningUsage) -> RunningUsage:
        return self.speaks if self.speaks in _each(asked) else NONE


def _each(asked: RunningUsage) -> set[RunningUsage]:
    return {VLLM, LLAMA_CPP} if asked is AUTO else {asked}


def stream(dialects: UsageDialects, server: Server, version: str | None = None) -> str:
    """Send one stream to ``server``; return the dialects in which it was asked, in their order."""
    posted: list[RunningUsage] = []

    async def post(asked: RunningUsage) -> Response:
        posted.append(asked)
        return server.posted(asked)

    assert asyncio.run(dialects.post(DEPLOYMENT, post)) is ANSWER
    dialects.ended(DEPLOYMENT, posted[-1], server.seen(posted[-1]), version)
    return " ".join(each.value for each in posted)


def refused(
    dialects: UsageDialects,
    failure: Exception,
    clock: Clock | None = None,
    seconds: float = 0,
    deployment: DeploymentRef = DEPLOYMENT,
) -> list[RunningUsage]:
    """Send a stream that fails in any dialect, after ``seconds``; return those it was asked in."""
    posted: list[RunningUsage] = []

    async def post(asked: RunningUsage) -> Response:
        posted.append(asked)
        if clock is not None:
            clock.now += seconds
        raise failure

    with pytest.raises(type(failure)):
        asyncio.run(dialects.post(deployment, post))
    return posted


BOTH = frozenset({VLLM, LLAMA_CPP})
SERVERS = {
    "reports as vLLM": (Server(VLLM), ["auto", "vllm", "vllm"]),
    "reports as llama.cpp": (Server(LLAMA_CPP), ["auto", "llama.cpp", "llama.cpp"]),
    "ignores both": (Server(), ["auto", "none", "none"]),
    "refuses the other": (Server(VLLM, frozenset({LLAMA_CPP})), ["auto none", "vllm", "vllm"]),
    "refuses the first": (
        Server(LLAMA_CPP, frozenset({VLLM})),
        ["auto none", "vllm none", "llama.cpp", "llama.cpp"],
    ),
    "refuses both": (
        Server(NONE, BOTH),
        ["auto none", "vllm none", "llama.cpp none", "none", "none"],
    ),
    "refuses both, in no words": (
        Server(NONE, BOTH, terse=True),
        ["auto none", "vllm none", "llama.cpp none", "none", "none"],
    ),
    "fails on the other": (
        Server(VLLM, frozenset({LLAMA_CPP}), fails=True),
        ["auto none", "auto none", "auto none", "vllm", "vllm"],
    ),
    "refuses one and ignores the other": (
        Server(NONE, frozenset({LLAMA_CPP})),
        ["auto none", "vllm", "llama.cpp none", "none"],
    ),
}


@pytest.mark.parametrize("name", SERVERS)
def test_the_first_streams_find_the_dialect(dialects: UsageDialects, name: str) -> None:
    server, asked = SERVERS[name]

    assert [stream(dialects, server) for _ in asked] == asked


@pytest.mark.parametrize("configured", [VLLM, LLAMA_CPP, NONE])
def test_a_configured_dialect_is_neither_learnt_nor_retried(
    dialects: UsageDialects, configured: RunningUsage
) -> None:
    deployment = replace(DEPLOYMENT, backend=replace(BACKEND, running_usage=configured))
    wrong = BackendRejectedRequest("Unknown parameter: timings_per_token.")

    assert refused(dialects, wrong, deployment=deployment) == [configured]
    dialects.ended(deployment, configured, NONE, None)

    assert dialects.dialect(deployment) is configured


@pytest.mark.parametrize(
    "failure",
    [
        BackendRejectedRequest("No."),
        BackendRejectedRequest("No: 'stream_options'."),
        ServerFailed(),
    ],
    ids=["refused", "refused with a quoted name", "failed"],
)
@pytest.mark.parametrize(("proven", "later"), [(False, NONE), (True, VLLM)])
def test_after_a_failure_without_a_dialect_too_nothing_is_repeated_for_a_minute(
    dialects: UsageDialects, clock: Clock, failure: Exception, proven: bool, later: RunningUsage
) -> None:
    if proven:
        stream(dialects, Server(VLLM))
    first = dialects.dialect(DEPLOYMENT)

    assert refused(dialects, failure) == [first, NONE]
    clock.now += QUIET_SECONDS - 1
    assert refused(dialects, failure) == [later], "asked without, or in what is proven"
    clock.now += 1
    assert refused(dialects, failure) == [first, NONE]


def test_a_bad_request_before_anything_is_known_lets_no_other_caller_be_refused(
    dialects: UsageDialects, clock: Clock
) -> None:
    refused(dialects, BackendRejectedRequest("No."))

    asked = [stream(dialects, Server(NONE, BOTH))]
    clock.now += QUIET_SECONDS
    asked += [stream(dialects, Server(NONE, BOTH)) for _ in range(4)]

    assert asked == ["none", "auto none", "vllm none", "llama.cpp none", "none"]


def test_a_late_server_error_is_not_repeated(dialects: UsageDialects, clock: Clock) -> None:
    late = QUICK_FAILURE_SECONDS + 0.1

    assert refused(dialects, ServerFailed(), clock, late) == [AUTO]
    clock.now += QUIET_SECONDS
    assert refused(dialects, BackendRejectedRequest("No."), clock, late) == [AUTO, NONE]


def test_server_errors_by_chance_do_not_end_the_learning(dialects: UsageDialects) -> None:
    broken, works = Server(VLLM, BOTH, fails=True), Server(VLLM)

    asked = [stream(dialects, server) for server in (broken, broken, works, broken, broken, works)]

    assert asked == ["auto none", "auto none", "auto", "vllm none", "vllm none", "vllm"]
    assert stream(dialects, broken) == "vllm none", "counted in a row only"
    assert dialects.dialect(DEPLOYMENT) is VLLM


@pytest.mark.parametrize(
    "failure",
    [NotStarted(ServerOverloaded()), ConnectionLost(), Misconfigured(), BackendTimeout()],
    ids=lambda failure: type(failure).__name__,
)
def test_another_failure_is_not_retried(dialects: UsageDialects, failure: Exception) -> None:
    assert refused(dialects, failure) == [AUTO]


@pytest.mark.parametrize(
    ("first", "raised"),
    [(ServerFailed(), ServerFailed), (BackendRejectedRequest(), NotStarted)],
    ids=["failed", "refused"],
)
def test_a_request_may_go_to_another_backend_unless_the_first_has_failed_on_it(
    dialects: UsageDialects, clock: Clock, first: Exception, raised: type[Exception]
) -> None:
    failures = [first, NotStarted(BackendUnavailable(), unreachable=True)]

    async def post(_asked: RunningUsage) -> Response:
        raise failures.pop(0)

    with pytest.raises(raised):
        asyncio.run(dialects.post(DEPLOYMENT, post))

    assert not failures
    clock.now += QUIET_SECONDS
    assert dialects.dialect(DEPLOYMENT) is AUTO


def test_a_stream_that_was_too_short_teaches_nothing(dialects: UsageDialects) -> None:
    dialects.ended(DEPLOYMENT, AUTO, None, "b1")

    assert dialects.dialect(DEPLOYMENT) is AUTO


def test_a_stream_that_ends_late_does_not_change_what_others_found(dialects: UsageDialects) -> None:
    stream(dialects, Server(VLLM))

    dialects.ended(DEPLOYMENT, AUTO, NONE, None)

    assert dialects.dialect(DEPLOYMENT) is VLLM


def test_a_dialect_is_learnt_anew_when_its_reports_stop(dialects: UsageDialects) -> None:
    stream(dialects, Server(VLLM))

    asked = [stream(dialects, Server(LLAMA_CPP)) for _ in range(4)]

    assert asked == ["vllm", "vllm", "auto", "llama.cpp"]


def test_one_stream_without_reports_does_not_end_a_proven_dialect(dialects: UsageDialects) -> None:
    stream(dialects, Server(VLLM))

    for _ in range(3):
        assert stream(dialects, Server()) == "vllm"
        assert stream(dialects, Server(VLLM)) == "vllm"


@pytest.mark.parametrize(
    ("refuses", "streams"),
    [(Server(NONE, BOTH, terse=True), 1), (Server(NONE, BOTH, fails=True), 3)],
    ids=["terse", "failing"],
)
def test_a_proven_dialect_that_is_refused_now_is_left_and_no_caller_notices(
    dialects: UsageDialects, refuses: Server, streams: int
) -> None:
    stream(dialects, Server(VLLM))

    assert [stream(dialects, refuses) for _ in range(streams)] == ["vllm none"] * streams
    assert dialects.dialect(DEPLOYMENT) is AUTO
    for _ in range(3 * streams):
        stream(dialects, refuses)
    assert dialects.dialect(DEPLOYMENT) is NONE


def test_of_two_servers_behind_one_address_the_one_that_refuses_is_not_noticed(
    dialects: UsageDialects,
) -> None:
    stream(dialects, Server(VLLM))

    for _ in range(12):
        stream(dialects, Server(NONE, BOTH, terse=True))
        stream(dialects, Server(VLLM))


@pytest.mark.parametrize(("speaks", "later"), [(NONE, AUTO), (VLLM, VLLM)])
def test_no_running_usage_is_believed_for_an_hour_and_a_dialect_with_an_effect_for_longer(
    dialects: UsageDialects, clock: Clock, speaks: RunningUsage, later: RunningUsage
) -> None:
    stream(dialects, Server(speaks))

    clock.now += REMEMBERED_SECONDS - 1
    assert dialects.dialect(DEPLOYMENT) is speaks
    clock.now += 1
    assert dialects.dialect(DEPLOYMENT) is later
    clock.now += 9 * REMEMBERED_SECONDS
    assert dialects.dialect(DEPLOYMENT) is later


def test_another_version_is_learnt_anew_at_most_once_a_minute(
    dialects: UsageDialects, clock: Clock
) -> None:
    stream(dialects, Server(), "b1")

    clock.now += SHORTEST_VERSION_SECONDS - 1
    assert stream(dialects, Server(), "b2") == "none"
    assert dialects.dialect(DEPLOYMENT) is NONE
    clock.now += 1
    assert stream(dialects, Server(), "b1") == "none"
    assert dialects.dialect(DEPLOYMENT) is NONE, "the same version"
    stream(dialects, Server(), "b2")
    assert dialects.dialect(DEPLOYMENT) is AUTO


def test_the_version_is_kept_when_it_comes_after_a_refusal(
    dialects: UsageDialects, clock: Clock
) -> None:
    for _ in range(4):
        stream(dialects, Server(NONE, BOTH), "b1")
    clock.now += SHORTEST_VERSION_SECONDS

    stream(dialects, Server(NONE, BOTH), "b2")

    assert dialects.dialect(DEPLOYMENT) is AUTO


def test_what_was_learnt_belongs_to_backend_address_and_model(dialects: UsageDialects) -> None:
    stream(dialects, Server(VLLM))

    for other in (
        replace(DEPLOYMENT, backend=replace(BACKEND, id="another")),
        replace(DEPLOYMENT, backend=replace(BACKEND, base_url="http://127.0.0.1:2/v1")),
        replace(DEPLOYMENT, model="another"),
    ):
        assert dialects.dialect(other) is AUTO
    renamed = replace(DEPLOYMENT, backend=replace(BACKEND, name="renamed"))
    assert dialects.dialect(renamed) is VLLM


def test_a_bounded_number_of_models_is_remembered(dialects: UsageDialects) -> None:
    for number in range(MOST_REMEMBERED + 1):
        dialects.ended(DeploymentRef(BACKEND, f"m{number}"), AUTO, VLLM, None)

    assert dialects.dialect(DeploymentRef(BACKEND, "m0")) is AUTO
    assert dialects.dialect(DeploymentRef(BACKEND, "m1")) is VLLM
