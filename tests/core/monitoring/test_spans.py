"""Spans of a request and of its attempts at model servers, and the trace contexts of clients."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, Sampler
from opentelemetry.trace import SpanKind, StatusCode

from core.errors import ApiError, BackendUnavailable, ClientDisconnected, RateLimitExceeded
from core.monitoring import observation, spans
from core.monitoring.observation import Observation
from core.monitoring.trace_context import read
from tests.support.live import ROOT

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


class Recorded:
    """Requests that were observed in this process, and their spans."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        observation.observers.append(spans.Spans(provider, "1"))

    def begin(self, **headers: str) -> Observation:
        fields = [(name.encode(), value.encode()) for name, value in headers.items()]
        scope = {"method": "POST", "headers": fields}
        return observation.begin("req_1", scope, "inference", "chat")

    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    observation.observers.clear()
    # The event loops of later tests are made in the context that these tests run in.
    observation.nothing(None)


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_chat_has_a_server_span_and_a_client_span_below_the_clients_trace(
    recorded: Recorded,
) -> None:
    seen = recorded.begin(traceparent=PARENT, tracestate="congo=1")
    seen.model, seen.streamed = "acme/demo-8b", True
    attempt = seen.begin_attempt("gpu-1", "demo", "https://gpu.example/v1")
    seen.end_attempt(None)
    seen.counts = {"outcome": "success", "prompt_tokens": 7, "completion_tokens": 4}
    seen.mark_first_byte()
    seen.end(200, None)

    client, server = recorded.spans()
    assert (server.name, server.kind) == ("chat acme/demo-8b", SpanKind.SERVER)
    assert server.parent is not None
    assert f"{server.parent.span_id:016x}" == "b7ad6b7169203331"
    assert f"{server.context.trace_id:032x}" == TRACE
    facts = attributes(server)
    assert facts.pop("gen_ai.response.time_to_first_chunk") >= 0
    assert facts == {
        "svc.request_id": "req_1",
        "svc.surface": "inference",
        "svc.outcome": "success",
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "svc",
        "gen_ai.request.model": "acme/demo-8b",
        "gen_ai.request.stream": True,
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 4,
    }
    assert server.status.status_code is StatusCode.UNSET
    assert (client.name, client.kind) == ("chat demo", SpanKind.CLIENT)
    assert client.parent is not None
    assert client.parent.span_id == server.context.span_id
    assert attributes(client)["server.address"] == "gpu.example"
    assert attributes(client)["server.port"] == 443
    assert attempt.trace.decode() == (
        f"traceparent: 00-{TRACE}-{client.context.span_id:016x}-01\r\ntracestate: congo=1\r\n"
    )


def test_each_attempt_has_a_span_and_a_failed_one_says_why(recorded: Recorded) -> None:
    seen = recorded.begin()
    seen.begin_attempt("gpu-1", "demo", "http://a:8000/v1")
    seen.end_attempt(BackendUnavailable())
    seen.begin_attempt("gpu-2", "demo", "http://b:8000/v1")
    seen.end_attempt(None)
    seen.end(200, None)

    first, second, _ = recorded.spans()
    assert attributes(first)["error.type"] == "backend_unavailable"
    assert first.status.status_code is StatusCode.ERROR
    assert "error.type" not in attributes(second)
    assert attributes(second)["svc.backend"] == "gpu-2"


@pytest.mark.parametrize(
    ("failure", "status", "is_error"),
    [
        (BackendUnavailable(), 500, True),
        (BackendUnavailable(), 200, True),
        (RateLimitExceeded(), 429, False),
        (ClientDisconnected(), 499, False),
    ],
)
def test_a_failure_is_an_error_of_the_server_where_it_is_not_the_clients(
    recorded: Recorded, failure: ApiError, status: int, is_error: bool
) -> None:
    seen = recorded.begin()
    seen.end(status, failure)

    (server,) = recorded.spans()
    assert (server.status.status_code is StatusCode.ERROR) is is_error
    assert attributes(server)["error.type"] == failure.code


def test_a_trace_that_is_not_sampled_goes_on_as_such() -> None:
    off = Recorded(ParentBased(ALWAYS_OFF))
    seen = off.begin(traceparent=PARENT[:-1] + "0")
    attempt = seen.begin_attempt("gpu-1", "demo", "http://a/v1")
    seen.end_attempt(None)
    seen.end(200, None)

    assert off.spans() == ()
    assert attempt.trace.startswith(f"traceparent: 00-{TRACE}-".encode())
    assert attempt.trace.endswith(b"-00\r\n")


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_standard_variables_decide(variables: dict[str, str], wanted: bool) -> None:
    assert spans.is_wanted(variables) is wanted


def test_another_protocol_is_an_error_in_the_log_and_no_spans(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert spans.start({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "1", 0) is None
    assert "'grpc' is not http/protobuf" in caplog.text


def test_no_exporter_is_imported_without_a_collector() -> None:
    # The package redis imports the SDK's metrics by itself where they are installed.
    code = "import sys, svc_project.asgi\nsys.exit('opentelemetry.exporter' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def given(*fields: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in fields]


@pytest.mark.parametrize(
    "parent",
    [PARENT, f"cc-{TRACE}-b7ad6b7169203331-01-what-the-future-adds", f"01-{TRACE}-{'1' * 16}-ff"],
)
def test_a_valid_parent_is_passed_on_unchanged(parent: str) -> None:
    found = read(given(("host", "a"), ("traceparent", parent)))

    assert found is not None
    assert found.trace_id == TRACE
    assert found.lines == f"traceparent: {parent}\r\n".encode()


@pytest.mark.parametrize(
    "parent",
    [
        "",
        PARENT.upper(),
        PARENT[:-1],
        PARENT + "-more",
        "ff" + PARENT[2:],
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00_{TRACE}-b7ad6b7169203331-01",
        f"cc-{TRACE}-b7ad6b7169203331-01.more",
        f"cc-{TRACE}-b7ad6b7169203331-01-" + "a" * 201,
        f"cc-{TRACE}-b7ad6b7169203331-01-a\x00b",
        f"cc-{TRACE}-b7ad6b7169203331-01-\xe9",
    ],
)
def test_an_invalid_parent_is_dropped_with_its_state(parent: str) -> None:
    assert read(given(("traceparent", parent), ("tracestate", "a=1"))) is None


def test_two_parents_or_none_are_none() -> None:
    assert read(given(("traceparent", PARENT), ("traceparent", PARENT))) is None
    assert read(given(("tracestate", "a=1"))) is None


@pytest.mark.parametrize(
    ("states", "kept"),
    [
        (["congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"], "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"),
        (["a=1", "b@c=2"], "a=1,b@c=2"),
        (["a=1,, b=2"], "a=1,, b=2"),
        (["a"], ""),
        (["A=1"], ""),
        (["a=1,a=2"], ""),
        (["a=1,b=\xe9"], ""),
        (["a=" + "x" * 257], ""),
        ([",".join(f"k{number}=1" for number in range(33))], ""),
        (["a=1\x00"], ""),
        ([""], ""),
    ],
)
def test_a_state_is_passed_on_unchanged_or_not_at_all(states: list[str], kept: str) -> None:
    found = read(given(("traceparent", PARENT), *(("tracestate", each) for each in states)))

    assert found is not None
    assert found.state == kept
    assert (b"tracestate" in found.lines) is bool(kept)
