"""A collector of spans over OTLP/HTTP: it parses the protobuf of each export."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collected:
    """A span as it arrived, with the attributes of its process."""

    span: Span
    resource: dict[str, Any]

    @property
    def attributes(self) -> dict[str, Any]:
        return {each.key: value_of(each.value) for each in self.span.attributes}


@dataclass
class Collector:
    """What has arrived at ``port``."""

    port: int = 0
    spans: list[Collected] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def of_trace(self, trace_id: str) -> list[Collected]:
        """The spans of one trace, oldest first."""
        found = [each for each in list(self.spans) if each.span.trace_id.hex() == trace_id]
        return sorted(found, key=lambda each: each.span.start_time_unix_nano)

    def take(self, body: bytes) -> None:
        """Parse one export. Raises for anything else."""
        self.bodies.append(body)
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = {each.key: value_of(each.value) for each in group.resource.attributes}
            for scope in group.scope_spans:
                self.spans += [Collected(span, resource) for span in scope.spans]


def value_of(value: Any) -> Any:
    """The Python value of an attribute of OTLP."""
    return getattr(value, value.WhichOneof("value"))


@contextmanager
def running_collector() -> Iterator[Collector]:
    """Run a collector on a thread of its own."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            is_right = self.path == "/v1/traces" and (
                self.headers["content-type"] == "application/x-protobuf"
            )
            if is_right:
                collector.headers.append({k.lower(): v for k, v in self.headers.items()})
                collector.take(body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200 if is_right else 400)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
