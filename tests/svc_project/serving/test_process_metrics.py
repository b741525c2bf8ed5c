"""What ``/metrics`` says of the processes themselves, of what speech did, and of what rows cost."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import httpx2
import pytest
from django.conf import settings
from django.db import connection

from tests.support.gateways import Served
from tests.support.live import NO_TLS, Gateway
from tests.support.metrics import Metrics, metrics
from tests.support.processes import workers_of
from tests.support.served import another_gateway
from tests.support.speech.accounts import speech_account
from tests.support.until import until


def test_a_worker_shows_its_build_and_what_it_uses(gateway: Gateway) -> None:
    seen = metrics(gateway)

    assert seen.sum("svc_build_info", version=settings.VERSION) == 1
    assert 10e6 < seen.sum("process_resident_memory_bytes") < 4e9
    assert 5 < seen.sum("process_open_fds") < seen.sum("process_max_fds")
    assert seen.sum("process_cpu_seconds_total") > 0.1
    started = seen.sum("process_start_time_seconds")
    (pid,) = workers_of(gateway.command.process.pid)
    assert started == pytest.approx(Path(f"/proc/{pid}").stat().st_mtime, abs=5)
    assert 0 < started < time.time()
    assert seen.sum("svc_worker_restarts_total") == 0


def test_the_loop_is_looked_at_and_every_subject_was_polled_a_moment_ago(gateway: Gateway) -> None:
    first = metrics(gateway).sum("svc_event_loop_lag_seconds_count")
    until(lambda: metrics(gateway).sum("svc_event_loop_lag_seconds_count") > first)
    seen = metrics(gateway)

    for subject in ("keys", "catalog", "voices"):
        assert 0 < seen.sum("svc_poll_age_seconds", subject=subject) < 30


def test_a_loop_that_was_stopped_shows_its_lag(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway()
    before = metrics(gateway).sum("svc_event_loop_lag_seconds_sum")
    os.kill(gateway.command.worker, signal.SIGSTOP)
    time.sleep(0.6)  # the lag that is measured
    os.kill(gateway.command.worker, signal.SIGCONT)

    until(lambda: metrics(gateway).sum("svc_event_loop_lag_seconds_sum") - before > 0.25)


def test_rows_and_their_cost_are_counted_for_speech_and_chat(
    start_gateway: Callable[..., Gateway],
) -> None:
    gateway = start_gateway()
    speech = speech_account(gateway)
    gateway.sees_changes()
    answers = [gateway.chat("say: one two three"), gateway.chat("say: four", "plain")]
    spoken = speech.speak("Hello there.")
    with speech.session() as session:
        session.send(type="text", text="One. Two.")
        session.send(type="done")
        session.rest()
    assert speech.speak("Hello.", voice="nobody").status_code == 400

    seen = metrics(gateway)
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
        assert seen.sum("svc_cost_total", model=model, currency="USD") == pytest.approx(float(cost))
    assert seen.sum("svc_speech_outcomes_total", engine="espeak", outcome="success") == 2
    assert seen.sum("svc_speech_outcomes_total", transport="websocket") == 1
    assert seen.sum("svc_speech_characters_total") == len("Hello there.") + len("One. Two.")
    assert seen.sum("svc_speech_audio_seconds_total") > 1
    assert seen.sum("svc_speech_first_audio_seconds_count") == 1
    assert spoken.status_code == 200


@pytest.mark.redis
def test_a_replaced_worker_is_counted(gateway: Gateway, served: Served, tmp_path: Path) -> None:
    environment = {"REDIS_URL": os.environ["SVC_TEST_REDIS_URL"], "SVC_DATA_DIR": str(tmp_path)}
    with another_gateway(gateway, served, "--workers", "2", **environment) as (command, url):

        def reading() -> Metrics:
            address = f"{url.removesuffix('/v1')}/metrics"
            return Metrics(httpx2.get(address, verify=NO_TLS, timeout=60).text)

        def restarts() -> list[float]:
            seen = reading()
            return [seen.sum("svc_worker_restarts_total", worker=str(each)) for each in range(2)]

        until(lambda: reading().values("worker") == {"0", "1"})
        assert restarts() == [0, 0]
        if connection.vendor == "postgresql":
            assert {"0", "1", "pages"} <= until(
                lambda: _sessions() if len(_sessions()) > 2 else None
            )
        os.kill(max(workers_of(command.process.pid)), signal.SIGKILL)
        assert sorted(until(lambda: found if sum(found := restarts()) else None)) == [0, 1]


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
