"""Spans for OpenTelemetry, where the standard variables name a collector; an extra (``svc[otlp]``).

One server span for each request, one client span for each request to a model server below it, by the
semantic conventions of generative AI (https://opentelemetry.io/docs/specs/semconv/gen-ai/). No span holds
text. This module imports nothing of OpenTelemetry before ``start``.
"""

# ruff: noqa: PLC0415  # the packages are an extra, and take 100 ms and 15 MB
from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from core.monitoring.metrics import Family
from core.monitoring.observation import Attempt, Observation

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

log = logging.getLogger(__name__)

_CLOSE_SECONDS: Final = 5.0
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL: Final = "http/protobuf"


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether ``OTEL_*`` variables name a collector, and do not switch spans off."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return False
    return any(environment.get(name) for name in _ENDPOINTS)


def start(environment: Mapping[str, str], version: str, worker: int) -> Spans | None:
    """Return the observer that sends spans to the collector; None, and an error in the log, if it cannot."""
    protocol = next((environment[name] for name in _PROTOCOLS if environment.get(name)), _PROTOCOL)
    if protocol != _PROTOCOL:
        log.error("no spans are sent: the protocol %r is not %s", protocol, _PROTOCOL)
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        log.error("no spans are sent: install svc[otlp], because %s", error)
        return None
    try:
        own = {
            "service.name": environment.get("OTEL_SERVICE_NAME") or "svc",
            "service.version": version,
            "service.instance.id": f"{socket.gethostname()}-{worker}",
        }
        # What OTEL_RESOURCE_ATTRIBUTES names replaces these.
        resource = Resource.create(own).merge(OTELResourceDetector().detect())
        provider = TracerProvider(resource=resource)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except (
        Exception
    ) as error:  # whatever the SDK raises for its variables; the gateway serves without
        log.error("no spans are sent: %s: %s", type(error).__name__, error)
        return None
    return Spans(provider, version)


class Spans:
    """Observes requests and makes their spans (``core.monitoring.observation.Observer``)."""

    def __init__(self, provider: TracerProvider, version: str) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._tracer = provider.get_tracer("svc", version)
        self._propagator = TraceContextTextMapPropagator()
        self._none = Context()
        self._below = set_span_in_context
        self._server, self._client = SpanKind.SERVER, SpanKind.CLIENT
        self._error = Status(StatusCode.ERROR)

    def began(self, seen: Observation) -> None:
        """Start the request's span, below the client's where it sent a trace context."""
        parent = self._none
        if seen.trace is not None:
            parent = self._propagator.extract(seen.trace.headers(), self._none)
        seen.span = self._tracer.start_span(
            f"{seen.method} {seen.route}".strip(),
            context=parent,
            kind=self._server,
            start_time=seen.began_ns,
            attributes={"svc.request_id": seen.request_id, "svc.surface": seen.surface},
        )
        seen.trace_id = f"{seen.span.get_span_context().trace_id:032x}"
        seen.trace_lines = self._lines(seen.span)

    def attempt_began(self, seen: Observation, attempt: Attempt) -> None:
        """Start the span of a request to a model server, which gets its context."""
        address = urlsplit(attempt.address)
        attempt.span = self._tracer.start_span(
            f"chat {attempt.model}",
            context=self._below(seen.span, self._none),
            kind=self._client,
            start_time=attempt.began_ns,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": attempt.model,
                "server.address": address.hostname or "",
                "server.port": address.port or (443 if address.scheme == "https" else 80),
                "svc.backend": attempt.backend,
            },
        )
        attempt.trace = self._lines(attempt.span)

    def attempt_ended(self, seen: Observation, attempt: Attempt) -> None:
        """End its span."""
        if attempt.failure is not None:
            self._fail(attempt.span, attempt.failure)
        attempt.span.end(attempt.ended_ns)

    def ended(self, seen: Observation) -> None:
        """End the request's span."""
        span: Span = seen.span
        if seen.model is not None:
            span.update_name(f"chat {seen.model}")
        span.set_attributes({name: value for name, value in _facts(seen) if value is not None})
        if seen.code is not None and (seen.status >= 500 or seen.status == 200):
            # A client's own mistake is no error of a server's span.
            self._fail(span, seen.code)
        elif seen.code is not None:
            span.set_attribute("error.type", seen.code)
        span.end(seen.ended_ns)

    def families(self) -> Iterator[Family]:
        """Yield no metrics: the exporter logs what it loses."""
        yield from ()

    def close(self) -> None:
        """Send what waits, for up to 5 seconds."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)

    def _lines(self, span: Span) -> bytes:
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, self._below(span, self._none))
        return "".join(f"{name}: {value}\r\n" for name, value in carrier.items()).encode()

    def _fail(self, span: Span, kind: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(self._error)


def _facts(seen: Observation) -> Iterator[tuple[str, Any]]:
    counts = seen.counts
    yield "http.request.method", seen.method or None
    yield "http.response.status_code", seen.status
    yield "svc.organization_id", seen.organization_id
    yield "svc.key_prefix", seen.key_prefix
    yield "svc.outcome", counts.get("outcome")
    if seen.model is not None:
        yield "gen_ai.operation.name", "chat"
        yield "gen_ai.provider.name", "svc"
        yield "gen_ai.request.model", seen.model
        yield "gen_ai.request.stream", seen.streamed
        yield "gen_ai.usage.input_tokens", counts.get("prompt_tokens")
        yield "gen_ai.usage.output_tokens", counts.get("completion_tokens")
        if seen.first_byte is not None and seen.streamed:
            yield "gen_ai.response.time_to_first_chunk", seen.first_byte - seen.began
    yield "svc.voice", counts.get("voice")
    yield "svc.characters", counts.get("characters")
    yield "svc.audio_ms", counts.get("audio_ms")
    if seen.queue_seconds is not None:
        yield "svc.queue_seconds", seen.queue_seconds
