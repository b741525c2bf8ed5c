"""The server process: addresses, workers, and stopping without losing anything."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import httpx2
import pytest

from accounts.models import Scope
from tests.support.gateways import Served
from tests.support.live import ROOT, Gateway, events, eventually
from tests.support.processes import workers_of
from tests.support.served import another_gateway, ask, slow_stream


def test_sigterm_lets_running_streams_finish_and_refuses_new_ones(
    gateway: Gateway, served: Served
) -> None:
    with another_gateway(gateway, served) as (command, base_url):
        with slow_stream(base_url, gateway, tokens=30) as pieces:
            text = next(pieces)
            command.process.terminate()
            refused = eventually(
                lambda: (
                    answer
                    if (answer := ask(base_url, gateway, "say: late")).status_code == 503
                    else None
                )
            )
            text += "".join(pieces)

        assert refused.json()["error"]["code"] == "server_shutting_down"
        assert "retry-after" not in refused.headers
        assert events(text)[-1] == "[DONE]"
        assert command.process.wait(20) == 0
    (row,) = [row for row in gateway.rows() if row.streamed]
    assert row.outcome == "success"
    assert row.backend_reported_output_tokens == 30


def test_a_stream_that_outlasts_the_drain_ends_in_band_and_has_its_row(
    gateway: Gateway, served: Served
) -> None:
    with another_gateway(gateway, served, SVC_DRAIN_SECONDS="0.5") as (command, base_url):
        with slow_stream(base_url, gateway, tokens=500) as pieces:
            text = next(pieces)
            command.process.terminate()
            text += "".join(pieces)
        assert command.process.wait(20) == 0

    last = events(text)[-1]
    assert last["error"]["code"] == "server_shutting_down"
    (row,) = gateway.rows()
    assert (row.outcome, row.http_status, row.error_code) == (
        "interrupted",
        200,
        "server_shutting_down",
    )
    assert 0 < row.delivered_output_tokens <= row.generated_output_tokens < 500


def test_several_workers_need_a_shared_store() -> None:
    refused = subprocess.run(
        [sys.executable, "manage.py", "serve", "--workers", "2"],
        check=False,
        cwd=ROOT,
        env={**os.environ, "REDIS_URL": ""},
        capture_output=True,
        text=True,
        timeout=30,
    )

    assert refused.returncode == 1
    assert "REDIS_URL" in refused.stderr


@pytest.mark.redis
def test_several_workers_serve_and_a_dead_one_is_replaced(gateway: Gateway, served: Served) -> None:
    redis = os.environ["SVC_TEST_REDIS_URL"]
    with another_gateway(gateway, served, "--workers", "2", REDIS_URL=redis) as (command, url):

        def workers() -> set[int]:
            return workers_of(command.process.pid)

        first = eventually(lambda: found if len(found := workers()) == 2 else None)
        assert ask(url, gateway, "say: two workers").status_code == 200
        os.kill(min(first), 9)
        eventually(lambda: len(workers() - first) == 1)
        for _ in range(10):
            assert ask(url, gateway, "say: still there").status_code == 200
        assert command.stop() == 0
    assert len(gateway.rows()) == 11


def test_the_speech_port_is_another_surface(gateway: Gateway) -> None:
    chat = httpx2.post(
        f"http://127.0.0.1:{gateway.speech_port}/v1/chat/completions", headers=gateway.headers
    )

    assert chat.status_code == 404
    assert chat.headers["x-request-id"].startswith("req_")


def test_a_host_that_is_not_allowed_is_refused_in_json(gateway: Gateway) -> None:
    for path in ("/v1/chat/completions", "/v1/models"):
        answer = httpx2.post(
            gateway.url + path, headers={**gateway.headers, "host": "evil.example"}, json={}
        )
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "invalid_request_error"


def test_requests_leave_no_connection_or_file_open(gateway: Gateway) -> None:
    read = {"authorization": f"Bearer {gateway.mint(Scope.READ)}"}

    def ask_each_view() -> None:
        for path in ("/v1/models", "/v1/usage", "/v1/usage/export", "/admin/login/"):
            assert httpx2.get(gateway.url + path, headers=read).status_code == 200

    def open_files() -> int:
        return len(os.listdir(f"/proc/{gateway.command.process.pid}/fd"))

    ask_each_view()
    before = open_files()
    for _ in range(15):
        ask_each_view()

    eventually(lambda: open_files() <= before + 5)


def test_invalid_http_gets_the_contracts_error(gateway: Gateway) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=10) as client:
        client.sendall(b"NONSENSE\x00 / HTTP/9\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(65536), b""))

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"x-request-id: req_" in head
    error = json.loads(body)["error"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", None, None)
