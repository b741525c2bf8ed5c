"""``/livez``, ``/readyz`` and ``/metrics``."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import httpx2
import pytest
from django.db import connection

from tests.support.clients.raw_client import RawClient
from tests.support.gateways import Served
from tests.support.live import NO_TLS, Gateway
from tests.support.metrics import Metrics, metrics
from tests.support.served import another_gateway
from tests.support.servers.database_outage import rows_locked
from tests.support.until import until

StartGateway = Callable[..., Gateway]


def get(gateway: Gateway, path: str, **headers: str) -> httpx2.Response:
    return httpx2.get(
        f"{gateway.url}{path}",
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        verify=NO_TLS,
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/livez", {"status": "alive"}),
        ("/readyz", {"status": "ready", "reasons": []}),
        ("/health", {"status": "ready", "reasons": []}),  # as model servers call it
    ],
)
def test_a_serving_process_is_alive_and_ready_by_any_host_and_key(
    gateway: Gateway, path: str, said: dict[str, object]
) -> None:
    answer = get(gateway, path, host="10.1.2.3:8000", authorization="Bearer nonsense")

    assert (answer.status_code, answer.json()) == (200, said)
    assert answer.headers["x-request-id"].startswith("req_")
    assert answer.headers["cache-control"] == "no-store"


def test_only_reading_is_allowed_and_only_on_the_inference_surface(gateway: Gateway) -> None:
    posted = httpx2.post(f"{gateway.url}/readyz", verify=NO_TLS)
    headed = httpx2.head(f"{gateway.url}/readyz", verify=NO_TLS)
    elsewhere = httpx2.get(f"http://127.0.0.1:{gateway.speech_port}/metrics", verify=NO_TLS)

    assert (posted.status_code, posted.headers["allow"]) == (405, "GET, HEAD")
    assert (headed.status_code, headed.content) == (200, b"")
    assert elsewhere.status_code == 404


@pytest.mark.long
def test_readiness_fails_first_and_requests_are_served_until_the_delay_is_over(
    start_gateway: StartGateway,
) -> None:
    gateway = start_gateway(SVC_DRAIN_DELAY_SECONDS="4")
    assert get(gateway, "/readyz").status_code == 200
    gateway.command.process.send_signal(signal.SIGTERM)

    red = until(lambda: answer if (answer := get(gateway, "/readyz")).status_code == 503 else None)

    assert red.json() == {"status": "not_ready", "reasons": ["draining"]}
    assert get(gateway, "/health").status_code == 503
    assert get(gateway, "/livez").status_code == 200
    assert gateway.chat("say: still served").status_code == 200
    assert gateway.command.process.wait(60) == 0


def test_without_a_durable_place_for_rows_it_is_not_ready(start_gateway: StartGateway) -> None:
    gateway = start_gateway(SVC_JOURNAL_MAX_BYTES="0")
    assert get(gateway, "/readyz").status_code == 200

    with rows_locked():
        unmetered = gateway.chat("say: nobody may have this")
        red = get(gateway, "/readyz")
        refused = gateway.chat("say: nor this")
    back = until(lambda: answer if (answer := get(gateway, "/readyz")).status_code == 200 else None)

    assert (red.status_code, red.json()["status"]) == (503, "not_ready")
    # On PostgreSQL the lock on the rows lets the admission through, and the answer is withheld.
    ran = connection.vendor == "postgresql"
    code = unmetered.json()["error"]["code"]
    assert code == ("internal_error" if ran else "server_overloaded")
    assert refused.json()["error"]["code"] == "server_overloaded"
    assert back.json()["reasons"] == []


def test_metrics_count_the_requests(start_gateway: StartGateway) -> None:
    gateway = start_gateway()
    secret = "nobody-may-read-this"
    assert gateway.chat(f"say: one two three {secret}").status_code == 200
    assert gateway.chat("say: one two", stream=True).status_code == 200
    assert gateway.chat("[[sim fault=cut@1 tokens=5]]", stream=True).status_code == 200
    assert gateway.chat("hello", secret).status_code == 404
    assert gateway.post(b"{", headers={"authorization": "Bearer nonsense"}).status_code == 401
    assert gateway.get("/models").status_code == 200

    seen = metrics(gateway)

    chat = {"surface": "inference", "route": "chat"}
    assert seen.sum("svc_requests_total", status="200", code="", **chat) == 2
    assert seen.sum("svc_requests_total", status="200", code="backend_unavailable", **chat) == 1
    assert seen.sum("svc_requests_total", status="404", code="model_not_found", **chat) == 1
    assert seen.sum("svc_requests_total", status="401", **chat) == 1
    assert seen.sum("svc_requests_total", surface="inference", route="pages", status="200") == 1
    model = gateway.models["running"]
    assert seen.sum("svc_chat_outcomes_total", model=model, outcome="success") == 2
    assert seen.sum("svc_chat_duration_seconds_count", model=model) == 3
    assert seen.sum("svc_chat_duration_seconds_bucket", model=model, le="+Inf") == 3
    assert seen.sum("svc_ledger_rows_total") == 3
    reported = sum(row.backend_reported_output_tokens for row in gateway.rows())
    assert seen.sum("svc_tokens_total", kind="output") == reported
    assert seen.sum("svc_ready") == seen.sum("svc_ledger_database_up") == 1
    assert seen.sum("svc_requests_in_flight") == seen.sum("svc_body_bytes") == 0
    assert seen.sum("svc_connections") >= 1
    assert secret not in seen.text
    assert gateway.key not in seen.text
    assert seen.values("backend") >= {"simulator", "simulator-plain"}

    with RawClient(gateway) as running:
        running.chat("[[sim tokens=600 pace=20]]", stream=True)
        running.read_until(1, b"data: ")
        seen = metrics(gateway)
    assert seen.sum("svc_requests_in_flight") == 1
    assert seen.sum("svc_backend_in_flight", backend="simulator") == 1
    assert seen.sum("svc_body_bytes") > 50


def test_metrics_are_for_this_host_or_for_holders_of_the_token(
    gateway: Gateway, gateway_with: StartGateway
) -> None:
    """Behind a proxy, whose connections come from this host, they need the token."""
    assert get(gateway, "/metrics").status_code == 200
    assert get(gateway, "/metrics", x_forwarded_for="203.0.113.9").status_code == 404
    behind = gateway_with(SVC_PROXIES="1")
    assert get(behind, "/metrics").status_code == 404
    assert get(behind, "/livez").status_code == 200

    guarded = gateway_with(SVC_METRICS_TOKEN="open sesame")
    refused = [
        get(guarded, "/metrics"),
        get(guarded, "/metrics", authorization="Bearer wrong"),
        get(guarded, "/metrics", authorization=f"Bearer {gateway.key}"),
    ]
    assert [answer.status_code for answer in refused] == [401] * 3
    assert refused[0].json()["error"]["type"] == "authentication_error"
    passed = get(
        guarded, "/metrics", authorization="Bearer open sesame", x_forwarded_for="203.0.113.9"
    )
    assert passed.status_code == 200
    assert passed.headers["content-type"].startswith("text/plain; version=0.0.4")


@pytest.mark.parametrize("host", ["evil.example", "10.1.2.3:8000", "localhost.evil.example", ""])
def test_without_a_token_the_metrics_are_for_this_host_by_its_own_name(
    gateway: Gateway, host: str
) -> None:
    """Otherwise a page of another site could read them, in a browser on this host."""
    assert get(gateway, "/metrics", host="localhost:8000").status_code == 200
    assert get(gateway, "/metrics", host="[::1]:8000").status_code == 200
    assert get(gateway, "/metrics", host=host).status_code == 404


@pytest.mark.redis
def test_any_worker_shows_the_metrics_of_all(gateway: Gateway, served: Served) -> None:
    redis = os.environ["SVC_TEST_REDIS_URL"]
    with another_gateway(gateway, served, "--workers", "2", REDIS_URL=redis) as (_, url):

        def reading() -> Metrics:
            address = f"{url.removesuffix('/v1')}/metrics"
            return Metrics(httpx2.get(address, verify=NO_TLS, timeout=60).text)

        until(lambda: reading().values("worker") == {"0", "1"})
        seen = reading()

    assert seen.sum("svc_ready") == 2
    assert seen.sum("svc_limiter_shared") == 2
