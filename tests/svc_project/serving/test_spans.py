"""Spans of a whole gateway, as a collector receives them over OTLP/HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.faults.case import publish_single
from tests.support.live import Gateway
from tests.support.model_servers.scripted import scripted_server
from tests.support.servers.collector import Collector, running_collector
from tests.support.speech.accounts import speech_account
from tests.support.until import until

TRACE = "0af7651916cd43dd8448eb211c80319c"
SECRET = "the-launch-is-on-monday"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with running_collector() as running:
        yield running


@pytest.fixture
def traced(gateway_with: Callable[..., Gateway], collector: Collector) -> Gateway:
    return gateway_with(
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint,
        OTEL_EXPORTER_OTLP_HEADERS="x-tenant=ops",
        OTEL_BSP_SCHEDULE_DELAY="50",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
        SVC_REQUEST_LOG="true",
    )


def test_a_trace_goes_from_the_client_through_the_gateway_into_the_model_server(
    traced: Gateway, collector: Collector
) -> None:
    with scripted_server() as server:
        model = publish_single(traced, server.base_url, running=True)
        answer = traced.post(
            {"model": model, "stream": True, "messages": [{"role": "user", "content": SECRET}]},
            headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"},
        )
        (entry,) = server.requests_of(SECRET)

    request_id = answer.headers["x-request-id"]
    above, below = until(lambda: found if len(found := collector.of_trace(TRACE)) == 2 else None)
    assert above.span.parent_span_id.hex() == "b7ad6b7169203331"
    assert above.attributes["svc.request_id"] == request_id
    assert above.attributes["gen_ai.request.model"] == model
    assert above.attributes["gen_ai.usage.output_tokens"] == 4
    assert above.attributes["svc.organization_id"] == str(traced.organization.pk)
    assert below.span.parent_span_id == above.span.span_id
    assert entry["headers"]["traceparent"] == f"00-{TRACE}-{below.span.span_id.hex()}-01"
    assert above.span.start_time_unix_nano <= below.span.start_time_unix_nano
    assert below.span.end_time_unix_nano <= above.span.end_time_unix_nano
    assert above.resource["service.name"] == "svc"
    assert above.resource["deployment.environment.name"] == "test"
    assert collector.headers[-1]["x-tenant"] == "ops"
    sent = b"".join(collector.bodies)
    assert SECRET.encode() not in sent
    assert traced.key.encode() not in sent


def test_a_trace_that_begins_here_is_found_from_the_request_log(
    traced: Gateway, collector: Collector
) -> None:
    speech = speech_account(traced)
    traced.sees_changes()
    spoken = speech.speak("Hello.")

    def find() -> list[str]:
        written = traced.command.log.read_text().splitlines()
        return [each for each in written if spoken.headers["x-request-id"] in each]

    (line,) = until(find)
    trace_id = line.partition('"trace_id":"')[2][:32]
    (span,) = until(lambda: collector.of_trace(trace_id))
    assert span.attributes["svc.characters"] == len("Hello.")
    assert span.span.name == "POST speech"


def test_a_collector_that_is_away_costs_no_request(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway(
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1", OTEL_BSP_SCHEDULE_DELAY="50"
    )

    assert [gateway.chat("say: a").status_code for _ in range(5)] == [200] * 5
    assert gateway.command.stop() == 0
