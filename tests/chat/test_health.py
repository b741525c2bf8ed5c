"""Model servers that keep failing, and requests that make them fail, as callers see it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from inference.models import Backend
from tests.door import Door
from tests.figures import figures
from tests.live import Gateway, eventually
from tests.live_catalog import backend, nowhere, publish

StartGateway = Callable[..., Gateway]


@pytest.fixture
def door(gateway: Gateway) -> Iterator[Door]:
    with Door(gateway.simulator.port) as door:
        yield door


def statuses(gateway: Gateway, model: str, count: int) -> list[int]:
    return [gateway.chat(f"say: {number}", model).status_code for number in range(count)]


def ejected(gateway: Gateway, which: Backend) -> bool:
    return figures(gateway).sum("svc_backend_ejected", backend=which.name) == 1


def test_a_backend_that_keeps_failing_gets_no_requests_while_another_can_take_them(
    start_gateway: StartGateway, door: Door
) -> None:
    gateway = start_gateway(SVC_BACKEND_EJECT_AFTER="2", SVC_BACKEND_EJECT_SECONDS="60")
    sick, sound = backend(gateway, base_url=door.base_url), backend(gateway)
    model = publish(gateway, sick, sound).identifier
    door.shut = True

    first = statuses(gateway, model, 4)
    after = statuses(gateway, model, 12)

    assert sorted(first) == [200, 200, 500, 500]
    assert after == [200] * 12
    assert door.lost == 2
    assert ejected(gateway, sick)
    assert not ejected(gateway, sound)


def test_a_backend_that_is_back_is_tried_by_one_request_and_taken_in_again(
    start_gateway: StartGateway, door: Door
) -> None:
    gateway = start_gateway(SVC_BACKEND_EJECT_AFTER="1", SVC_BACKEND_EJECT_SECONDS="0.5")
    sick = backend(gateway, base_url=door.base_url)
    model = publish(gateway, sick, backend(gateway)).identifier
    door.shut = True
    eventually(lambda: 500 in statuses(gateway, model, 1))

    # Its time is over: of many requests at once only one tries it.
    lost = door.lost
    eventually(lambda: 500 in statuses(gateway, model, 1))
    with ThreadPoolExecutor(8) as threads:
        together = list(
            threads.map(lambda number: gateway.chat(f"say: {number}", model).status_code, range(8))
        )
    assert together.count(500) <= 1
    assert door.lost <= lost + 2

    door.shut = False
    eventually(lambda: statuses(gateway, model, 1) == [200] and not ejected(gateway, sick), 20)
    assert statuses(gateway, model, 6) == [200] * 6


def test_the_only_backend_of_a_model_is_never_left_out(
    start_gateway: StartGateway, door: Door
) -> None:
    gateway = start_gateway(SVC_BACKEND_EJECT_AFTER="2", SVC_BACKEND_EJECT_SECONDS="60")
    only = backend(gateway, base_url=door.base_url)
    model = publish(gateway, only).identifier
    door.shut = True
    assert statuses(gateway, model, 5) == [500] * 5
    seen = figures(gateway)
    assert seen.sum("svc_backend_ejections_total", backend=only.name) == 1
    assert seen.sum("svc_backend_failures_in_a_row", backend=only.name) == 5
    assert not ejected(gateway, only), "it is still asked"

    door.shut = False

    assert statuses(gateway, model, 3) == [200] * 3
    assert figures(gateway).sum("svc_backend_failures_in_a_row", backend=only.name) == 0


def test_with_a_check_no_request_has_to_try(start_gateway: StartGateway, door: Door) -> None:
    gateway = start_gateway(
        SVC_BACKEND_EJECT_AFTER="1",
        SVC_BACKEND_EJECT_SECONDS="0.1",
        SVC_BACKEND_CHECK_SECONDS="0.2",
    )
    sick = backend(gateway, base_url=door.base_url)
    model = publish(gateway, sick, backend(gateway)).identifier
    door.shut = True
    eventually(lambda: 500 in statuses(gateway, model, 1))
    checks = door.lost
    eventually(lambda: door.lost >= checks + 3)

    assert statuses(gateway, model, 6) == [200] * 6
    assert ejected(gateway, sick)

    door.shut = False
    eventually(lambda: not ejected(gateway, sick))


@pytest.mark.parametrize("fault", ["status@400", "status@401", "status@429", "status@503"])
def test_refusals_and_honest_overload_do_not_count(start_gateway: StartGateway, fault: str) -> None:
    gateway = start_gateway(SVC_BACKEND_EJECT_AFTER="1")
    busy = [backend(gateway), backend(gateway)]
    model = publish(gateway, *busy).identifier

    for _ in range(4):
        assert gateway.chat(f"[[sim fault={fault}]]", model).status_code >= 400

    seen = figures(gateway)
    assert [seen.sum("svc_backend_ejections_total", backend=each.name) for each in busy] == [0, 0]


@pytest.mark.parametrize("fault", ["redirect", "cut@3", "hang"])
def test_what_a_backend_is_to_blame_for_counts(start_gateway: StartGateway, fault: str) -> None:
    gateway = start_gateway(SVC_BACKEND_EJECT_AFTER="1")
    hasty = [backend(gateway, first_byte_seconds=0.3, idle_seconds=0.3) for _ in range(2)]
    model = publish(gateway, *hasty).identifier

    gateway.chat(f"[[sim tokens=9 fault={fault}]]", model, stream=True)

    seen = figures(gateway)
    assert sum(seen.sum("svc_backend_ejections_total", backend=one.name) for one in hasty) == 1


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


class TextOnly(BaseHTTPRequestHandler):
    """A model server that answers 500 to a picture; ``broken``: and to every other chat;
    ``dead``: to everything.
    """

    protocol_version = "HTTP/1.1"
    server: TextOnlyServer

    def do_GET(self) -> None:
        self.server.asked += 1
        self._answer(502 if self.server.dead else 200, {"data": []})

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["content-length"]))
        if self.server.broken or self.server.dead or b"image_url" in asked:
            self._answer(500, {"error": {"message": "image input is not supported"}})
            return
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": "ok"},
            "finish_reason": "stop",
        }
        usage = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
        self._answer(200, {"choices": [choice], "usage": usage})

    def _answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


class TextOnlyServer(ThreadingHTTPServer):
    """``asked``: how often it was asked for its models."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), TextOnly)
        self.broken = self.dead = False
        self.asked = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@pytest.fixture
def text_only() -> Iterator[list[TextOnlyServer]]:
    """Two of them."""
    servers = [TextOnlyServer(), TextOnlyServer()]
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield servers
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()


def show_pictures(gateway: Gateway, model: str, count: int, key: str | None = None) -> list[int]:
    """The statuses of ``count`` different requests with a picture, by the holder of ``key``."""
    headers = {"authorization": f"Bearer {key}"} if key else gateway.headers
    found = []
    for number in range(count):
        parts = [{"type": "text", "text": f"What is this? ({number})"}, PICTURE]
        body = {"model": model, "messages": [{"role": "user", "content": parts}]}
        found.append(gateway.post(body, headers=headers).status_code)
    return found


def out(gateway: Gateway, *backends: Backend) -> list[float]:
    """How often each was ejected."""
    seen = figures(gateway)
    return [seen.sum("svc_backend_ejections_total", backend=each.name) for each in backends]


def test_a_callers_own_bad_requests_put_no_backend_out(
    gateway: Gateway, text_only: list[TextOnlyServer]
) -> None:
    pair = [backend(gateway, base_url=each.base_url) for each in text_only]
    model = publish(gateway, *pair).identifier

    assert show_pictures(gateway, model, 12) == [500] * 12

    eventually(lambda: all(server.asked for server in text_only))
    assert statuses(gateway, model, 4) == [200] * 4
    assert out(gateway, *pair) == [0, 0]
    assert [ejected(gateway, each) for each in pair] == [False, False]


def test_a_server_that_fails_all_callers_is_ejected_but_at_most_half_are_left_out(
    gateway: Gateway, text_only: list[TextOnlyServer]
) -> None:
    pair = [backend(gateway, base_url=each.base_url) for each in text_only]
    model = publish(gateway, *pair).identifier
    text_only[0].broken = text_only[1].broken = True
    keys = [gateway.mint(), gateway.mint(), gateway.mint()]

    for _ in range(4):
        for key in keys:
            assert show_pictures(gateway, model, 1, key) == [500]

    eventually(lambda: min(out(gateway, *pair)) >= 1)
    assert sum(ejected(gateway, each) for each in pair) == 1


def test_a_server_that_fails_its_only_caller_is_ejected_when_it_is_not_well_itself(
    gateway: Gateway, text_only: list[TextOnlyServer]
) -> None:
    dead, sound = (backend(gateway, base_url=each.base_url) for each in text_only)
    model = publish(gateway, dead, sound).identifier
    text_only[0].dead = True

    assert sorted(statuses(gateway, model, 10)) == [200] * 5 + [500] * 5

    eventually(lambda: ejected(gateway, dead))
    assert out(gateway, sound) == [0]


def test_an_unreachable_backend_is_passed_over_without_a_failure_and_then_left_out(
    start_gateway: StartGateway,
) -> None:
    gateway = start_gateway(SVC_BACKEND_EJECT_AFTER="2", SVC_BACKEND_EJECT_SECONDS="60")
    absent = nowhere(gateway)
    model = publish(gateway, absent, backend(gateway)).identifier

    assert statuses(gateway, model, 12) == [200] * 12

    seen = figures(gateway)
    assert seen.sum("svc_backend_failures_total", backend=absent.name) == 2
    assert ejected(gateway, absent)


def test_a_request_that_breaks_servers_is_refused_before_it_reaches_the_next(
    start_gateway: StartGateway,
) -> None:
    gateway = start_gateway(SVC_BACKEND_EJECT_AFTER="0")
    with Door(gateway.simulator.port) as one, Door(gateway.simulator.port) as other:
        doors = [backend(gateway, base_url=each.base_url) for each in (one, other)]
        model = publish(gateway, *doors).identifier
        one.shut = other.shut = True
        deaths = [gateway.chat("deadly", model) for _ in range(2)]
        one.shut = other.shut = False

        refused = gateway.chat("deadly", model)

        assert [answer.json()["error"]["code"] for answer in deaths] == ["backend_unavailable"] * 2
        assert refused.status_code == 500
        assert refused.json()["error"]["code"] == "backend_error"
        assert "repeatedly broken the model servers" in refused.json()["error"]["message"]
        assert refused.headers["x-should-retry"] == "false"
        assert len(gateway.rows()) == 2, "it was not admitted"
        assert gateway.chat("say: something else", model).status_code == 200
        assert figures(gateway).sum("svc_poison_refusals_total") == 1
        another = gateway.post(
            {"model": model, "messages": [{"role": "user", "content": "deadly"}]},
            headers={"authorization": f"Bearer {gateway.mint()}"},
        )
        assert another.status_code == 200, "nobody's request taints another's"


def test_a_common_request_that_was_there_once_too_often_is_cleared_by_a_success(
    start_gateway: StartGateway,
) -> None:
    gateway = start_gateway(SVC_BACKEND_EJECT_AFTER="0")
    with Door(gateway.simulator.port) as one, Door(gateway.simulator.port) as other:
        doors = [backend(gateway, base_url=each.base_url) for each in (one, other)]
        model = publish(gateway, *doors).identifier
        seen = []
        for is_shut in (True, False, True, False):
            one.shut = other.shut = is_shut
            if is_shut:
                one.slam()
                other.slam()
            seen.append(gateway.chat("say: ping", model).status_code)

    assert seen[1] == seen[3] == 200
