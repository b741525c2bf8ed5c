"""``/livez``, ``/readyz`` and ``/metrics``, also of the processes themselves and of what rows cost."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path

import httpx2
import pytest
from django.conf import settings
from django.db import connection

from tests.support.clients.raw_client import RawClient
from tests.support.gateways import Served, another_gateway
from tests.support.live import Gateway, fetch
from tests.support.metrics import Metrics, metrics
from tests.support.processes import processor_seconds, start_of, workers_of
from tests.support.served import ask, two_workers
from tests.support.speech.accounts import speech_account
from tests.support.until import until

StartGateway = Callable[..., Gateway]


def get(gateway: Gateway, path: str, **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return fetch(f"{gateway.url}{path}", headers=named)


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
    posted = fetch(f"{gateway.url}/readyz", "POST")
    headed = fetch(f"{gateway.url}/readyz", "HEAD")
    elsewhere = fetch(f"http://127.0.0.1:{gateway.speech_port}/metrics")

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


@pytest.fixture(scope="module")
def counting(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway that counts the requests of these tests alone."""
    with another_gateway(served, tmp_path_factory.mktemp("counting")) as started:
        yield started


@pytest.fixture
def counted(counting: Served, gateway: Gateway) -> Gateway:
    return counting.serving(gateway)


def added(before: Metrics, after: Metrics, name: str, **labels: str) -> float:
    return after.sum(name, **labels) - before.sum(name, **labels)


def test_metrics_count_the_requests(counted: Gateway) -> None:
    gateway = counted
    before = metrics(gateway)
    secret = "nobody-may-read-this"
    assert gateway.chat(f"say: one two three {secret}").status_code == 200
    assert gateway.chat("say: one two", stream=True).status_code == 200
    assert gateway.chat("[[sim fault=cut@1 tokens=5]]", stream=True).status_code == 200
    assert gateway.chat("hello", secret).status_code == 404
    assert gateway.post(b"{", headers={"authorization": "Bearer nonsense"}).status_code == 401
    assert gateway.get("/models").status_code == 200

    seen = metrics(gateway)
    more = partial(added, before, seen)
    chat = {"surface": "inference", "route": "chat"}
    assert more("svc_requests_total", status="200", code="", **chat) == 2
    assert more("svc_requests_total", status="200", code="backend_unavailable", **chat) == 1
    assert more("svc_requests_total", status="404", code="model_not_found", **chat) == 1
    assert more("svc_requests_total", status="401", **chat) == 1
    assert more("svc_requests_total", surface="inference", route="pages", status="200") == 1
    model = gateway.models["running"]
    assert more("svc_chat_outcomes_total", model=model, outcome="success") == 2
    assert more("svc_chat_duration_seconds_count", model=model) == 3
    assert more("svc_chat_duration_seconds_bucket", model=model, le="+Inf") == 3
    assert more("svc_ledger_rows_total") == 3
    reported = sum(row.backend_reported_output_tokens for row in gateway.rows())
    assert more("svc_tokens_total", kind="output") == reported
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
    """Behind a proxy they need the token: tests/svc_project/gate/test_gate.py."""
    assert get(gateway, "/metrics").status_code == 200
    assert get(gateway, "/metrics", x_forwarded_for="203.0.113.9").status_code == 404

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


def test_a_worker_shows_its_build_and_what_it_and_its_parent_use(gateway: Gateway) -> None:
    seen = metrics(gateway)

    assert seen.sum("svc_build_info", version=settings.VERSION) == 1
    parent = gateway.command.process.pid
    (worker,) = workers_of(parent)
    for name, pid in {"0": worker, "parent": parent}.items():
        of = partial(seen.sum, worker=name)
        assert 5e6 < of("process_resident_memory_bytes") < 4e9
        assert 5 < of("process_open_fds") < of("process_max_fds")
        assert of("process_cpu_seconds_total") == pytest.approx(processor_seconds(pid), abs=1)
        started = of("process_start_time_seconds")
        assert started == pytest.approx(start_of(pid), abs=5)
        assert 0 < started < time.time()
    assert seen.sum("svc_worker_restarts_total") == 0


def test_the_loop_is_looked_at_and_every_subject_was_polled_a_moment_ago(gateway: Gateway) -> None:
    first = metrics(gateway).sum("svc_event_loop_lag_seconds_count")
    until(lambda: metrics(gateway).sum("svc_event_loop_lag_seconds_count") > first)
    seen = metrics(gateway)

    for subject in ("keys", "catalog", "voices"):
        assert 0 < seen.sum("svc_poll_age_seconds", subject=subject) < 30


def test_a_loop_that_was_stopped_shows_its_lag(gateway: Gateway) -> None:
    before = metrics(gateway).sum("svc_event_loop_lag_seconds_sum")
    os.kill(gateway.command.worker, signal.SIGSTOP)
    time.sleep(0.6)  # the lag that is measured
    os.kill(gateway.command.worker, signal.SIGCONT)

    until(lambda: metrics(gateway).sum("svc_event_loop_lag_seconds_sum") - before > 0.25)


def test_rows_and_their_cost_are_counted_for_speech_and_chat(counted: Gateway) -> None:
    gateway = counted
    before = metrics(gateway)
    speech = speech_account(gateway)
    gateway.sees_changes()
    answers = [gateway.chat("say: one two three"), gateway.chat("say: four", "plain")]
    spoken = speech.speak("Hello there.")
    with speech.session() as session:
        session.send(type="text", text="One. Two.")
        session.send(type="done")
        session.rest()
    assert speech.speak("Hello.", voice="nobody").status_code == 400

    more = partial(added, before, metrics(gateway))
    rows = [gateway.row(each.headers["x-request-id"]) for each in answers]
    costs = {
        row.model_identifier: (
            row.backend_reported_input_tokens * row.input_price_per_mtok
            + row.backend_reported_output_tokens * row.output_price_per_mtok
        )
        / Decimal(1_000_000)
        for row in rows
    }
    for model, cost in costs.items():
        assert more("svc_cost_total", model=model, currency="USD") == pytest.approx(float(cost))
    assert more("svc_speech_outcomes_total", engine="espeak", outcome="success") == 2
    assert more("svc_speech_outcomes_total", transport="websocket") == 1
    assert more("svc_speech_characters_total") == len("Hello there.") + len("One. Two.")
    assert more("svc_speech_audio_seconds_total") > 1
    assert more("svc_speech_first_audio_seconds_count") == 1
    assert spoken.status_code == 200


@pytest.mark.redis
def test_any_worker_shows_the_metrics_of_all_and_a_dead_one_is_replaced(
    gateway: Gateway, served: Served, tmp_path: Path
) -> None:
    environment = {"SVC_DATA_DIR": str(tmp_path), "SVC_WORKER_SILENCE_SECONDS": "5"}
    with two_workers(gateway, served, **environment) as (command, url):

        def reading() -> Metrics:
            return Metrics(fetch(f"{url.removesuffix('/v1')}/metrics").text)

        def restarts() -> list[float]:
            seen = reading()
            return [seen.sum("svc_worker_restarts_total", worker=str(each)) for each in range(2)]

        until(lambda: reading().values("worker") == {"0", "1", "pages", "parent"})
        seen = reading()
        assert 10e6 < seen.sum("process_resident_memory_bytes", worker="pages") < 4e9
        assert (seen.sum("svc_ready"), seen.sum("svc_limiter_shared")) == (2, 2)
        assert restarts() == [0, 0]
        if connection.vendor == "postgresql":
            assert {"0", "1", "pages"} <= until(
                lambda: _sessions() if len(_sessions()) > 2 else None
            )
        os.kill(max(workers_of(command.process.pid)), signal.SIGKILL)
        assert sorted(until(lambda: found if sum(found := restarts()) else None)) == [0, 1]
        for _ in range(10):
            assert ask(url, gateway, "say: still there").status_code == 200
        assert command.stop() == 0
        # The parent checks the settings for its workers and the page process.
        assert (
            command.log.read_text().count("SVC_WORKER_SILENCE_SECONDS is no setting any more") == 1
        )
    assert len(gateway.rows()) == 10


def _sessions() -> set[str]:
    """The processes of this host's gateways, by the names of their sessions of PostgreSQL."""
    own = f"svc-{socket.gethostname()[:40]}-"
    with connection.cursor() as cursor:
        cursor.execute("SELECT application_name FROM pg_stat_activity")
        return {name.removeprefix(own) for (name,) in cursor.fetchall() if name.startswith(own)}


@pytest.mark.postgresql
def test_sessions_of_postgresql_name_their_host_and_process(gateway: Gateway) -> None:
    gateway.chat("say: a")

    assert "0" in until(_sessions)
    with connection.cursor() as cursor:
        cursor.execute("SHOW application_name")
        (own,) = cursor.fetchone() or ("",)
    assert own == f"svc-{socket.gethostname()[:40]}", "a command has no number"
