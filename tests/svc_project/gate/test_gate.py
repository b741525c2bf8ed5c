"""Bounds on requests that Django answers: bodies, threads, database connections, and shares."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from accounts.models import ApiKey, Organization, Scope
from accounts.models.security import FailedLogins
from tests.support.clients.raw_client import RawClient
from tests.support.gateways import IMPATIENT
from tests.support.live import Gateway, fetch
from tests.support.metrics import metrics
from tests.support.pages.signed_in import SignedIn, sign_in, token_of
from tests.support.servers.database_outage import tables_locked
from tests.support.until import until

GatewayWith = Callable[..., Gateway]
FEW_THREADS = {"SVC_DJANGO_THREADS": "8", "SVC_DJANGO_QUEUE_SECONDS": "1"}
TWO_THREADS = {"SVC_DJANGO_THREADS": "2", "SVC_DJANGO_QUEUE_SECONDS": "60"}

FORM_BYTES = 64 * 1024
"""The largest body of a form of the console (docs/explain/threat-model.md)."""


@pytest.fixture
def surface(request: pytest.FixtureRequest, gateway: Gateway) -> int:
    return gateway.port if request.param == "inference" else gateway.speech_port


def head_of(client: RawClient) -> tuple[int, str]:
    """Status and head of the answer that has begun."""
    client.read_until(1, b"\r\n\r\n")
    head = client.received.partition(b"\r\n\r\n")[0].decode()
    return int(head.split()[1]), head.lower()


def assert_busy(answer: httpx2.Response) -> None:
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize("surface", ["inference", "speech"], indirect=True)
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/models", 405),
        ("GET", "/v1/models", 401),
        ("GET", "/v1/nothing", 404),
        ("PUT", "/nothing", 404),
    ],
)
def test_a_body_that_no_view_takes_is_not_waited_for(
    gateway: Gateway, surface: int, method: str, path: str, status: int
) -> None:
    with RawClient(gateway, surface) as client:
        client.head("transfer-encoding: chunked", line=f"{method} {path}")
        client.send(b"5\r\nhello\r\n")
        answered, head = head_of(client)

    assert answered == status
    assert "application/json" in head


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_only_a_post_to_a_page_has_a_body(gateway: Gateway, method: str) -> None:
    with RawClient(gateway) as client:
        client.head("content-length: 999999999", line=f"{method} /console/login")
        answered, _ = head_of(client)

    assert answered in (200, 403, 405)


@pytest.mark.parametrize("path", ["/console/login", "/admin/login/"])
def test_a_form_that_announces_too_much_is_refused_unread(gateway: Gateway, path: str) -> None:
    with RawClient(gateway) as client:
        client.head("content-length: 2000000", line=f"POST {path}")
        answered, head = head_of(client)
        page = client.rest().decode()

    assert answered == 413
    assert "content-type: text/html" in head
    assert "content-security-policy: default-src 'none'" in head
    assert "cache-control: no-store" in head
    assert "larger than" in page
    assert "connection: close" in head


def test_a_form_that_turns_out_too_large_is_refused(gateway: Gateway) -> None:
    with RawClient(gateway) as client:
        client.head("transfer-encoding: chunked", line="POST /console/login")
        piece = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
        for _ in range(FORM_BYTES // 0x8000 + 1):
            client.send(piece)
        answered, _ = head_of(client)

    assert answered == 413


def test_a_form_that_arrives_too_slowly_is_refused(gateway_with: GatewayWith) -> None:
    gateway = gateway_with(**IMPATIENT)
    with RawClient(gateway) as client:
        client.head("content-length: 100", line="POST /console/login")
        client.send(b"x")
        answered, head = head_of(client)

    assert answered == 400
    assert "content-type: text/html" in head


def make_key(person: SignedIn) -> httpx2.Response:
    path = f"/console/{person.gateway.organization.slug}/keys/new"
    form = {"csrfmiddlewaretoken": person.token, "label": "x", "scope": "read"}
    return fetch(f"{person.gateway.url}{path}", "POST", data=form, cookies=person.cookies)


def writes_blocked() -> contextlib.AbstractContextManager[None]:
    """Block pages that write; pages that read go on."""
    return tables_locked(ApiKey._meta.db_table, FailedLogins._meta.db_table)


def views_threads(gateway: Gateway) -> int:
    """Threads of the process that Django's views run in."""
    tasks = Path(f"/proc/{gateway.command.worker}/task").glob("*/comm")
    return sum(task.read_text().startswith("django") for task in tasks)


def finished(answers: list[Future[httpx2.Response]]) -> list[httpx2.Response]:
    return [each.result() for each in answers if each.done()]


def test_forms_of_strangers_have_memory_of_their_own(gateway_with: GatewayWith) -> None:
    """One network may hold 2 MB of forms, so forms never use up the memory that chats need."""
    gateway = gateway_with(**FEW_THREADS)
    with contextlib.ExitStack() as stack:
        for count in (1, 2):
            slow = stack.enter_context(RawClient(gateway))
            slow.head("content-length: 1000000", line="POST /admin/login/")
            slow.send(b"x" * 950_000)
            until(lambda: metrics(gateway).sum("svc_body_bytes") == count * 950_000)  # noqa: B023

        third = stack.enter_context(RawClient(gateway))
        third.head("content-length: 1000000", line="POST /admin/login/")
        third.send(b"x" * 950_000)
        answered, head = head_of(third)

        assert answered == 503
        assert "retry-after: " in head
        assert "content-type: text/html" in head
        assert gateway.chat("say: there is room").status_code == 200
    until(lambda: metrics(gateway).sum("svc_body_bytes") == 0)


def test_the_members_of_an_organization_have_one_share_of_the_threads_and_others_are_served(
    gateway_with: GatewayWith,
) -> None:
    gateway = gateway_with(**FEW_THREADS)
    attacked = replace(gateway, organization=Organization.objects.create(name="attackers"))
    people = [sign_in(attacked) for _ in range(2)]
    usage, reader = f"{gateway.url}/v1/usage", gateway.mint(Scope.READ)
    assert fetch(usage, key=reader).status_code == 200

    with ThreadPoolExecutor(30) as pool, writes_blocked():
        answers = [pool.submit(make_key, people[number % 2]) for number in range(30)]
        refused = until(lambda: found if len(found := finished(answers)) >= 27 else None)

        assert fetch(usage, key=reader).status_code == 200
        assert gateway.get("/models").status_code == 200
        assert fetch(f"{gateway.url}/console/login").status_code == 200
        assert gateway.chat("say: still there").status_code == 200
        assert metrics(gateway).sum("svc_pages_in_flight") == 3

    for answer in refused:
        assert_busy(answer)
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.headers["cache-control"] == "no-store"
    assert views_threads(gateway) <= 8
    assert [each.result().status_code for each in answers].count(503) == 27
    until(lambda: metrics(gateway).sum("svc_pages_in_flight") == 0)


def test_a_client_may_read_a_hundred_models_at_once(gateway_with: GatewayWith) -> None:
    """As ``Promise.all`` over the catalog does, by default settings but for slow machines' time."""
    gateway = gateway_with(SVC_DJANGO_QUEUE_SECONDS="60")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(RawClient(gateway)) for _ in range(100)]
        for client in clients:
            key = f"authorization: Bearer {gateway.key}"
            client.send(f"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n{key}\r\n\r".encode())
        for client in clients:
            client.send(b"\n")

        answered = [head_of(client)[0] for client in clients]

    assert answered == [200] * 100


def test_strangers_cannot_take_all_threads_and_one_address_not_those_of_strangers(
    gateway_with: GatewayWith,
) -> None:
    gateway = gateway_with(**FEW_THREADS, SVC_PROXIES="1")
    usage, reader = f"{gateway.url}/v1/usage", gateway.mint(Scope.READ)
    # A proxy's connections come from this host, so they need a token.
    assert fetch(f"{gateway.url}/metrics").status_code == 404
    assert fetch(f"{gateway.url}/livez", key=reader).status_code == 200
    assert fetch(usage, key=reader).status_code == 200
    login = f"{gateway.url}/console/login"
    page = fetch(login)

    def guess(number: int) -> httpx2.Response:
        form = {"csrfmiddlewaretoken": token_of(page.text), "username": f"{number}@x.example"}
        headers = {"x-forwarded-for": "203.0.113.9"}
        return fetch(
            login,
            "POST",
            data={**form, "password": "x"},
            headers=headers,
            cookies=dict(page.cookies),
        )

    with ThreadPoolExecutor(30) as pool, writes_blocked():
        answers = [pool.submit(guess, number) for number in range(30)]
        refused = until(lambda: found if len(found := finished(answers)) >= 29 else None)

        assert fetch(usage, key=reader).status_code == 200
        elsewhere = fetch(login, headers={"x-forwarded-for": "198.51.100.7"})
        assert elsewhere.status_code == 200

    assert {each.status_code for each in refused} == {503}
    assert views_threads(gateway) <= 8


def test_an_unread_answer_holds_no_thread(gateway_with: GatewayWith) -> None:
    """Not even a static file or a page larger than what the sockets hold."""
    gateway = gateway_with(**TWO_THREADS)
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            client = stack.enter_context(RawClient(gateway))
            # Pipelined: more than the buffers between take, so that the server has to wait.
            request = b"GET /static/console.css HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
            client.send(request * 1000)
        answers = [fetch(f"{gateway.url}/console/login") for _ in range(3)]

    assert [each.status_code for each in answers] == [200] * 3


def test_a_client_that_disconnects_while_it_waits_costs_no_view(
    gateway_with: GatewayWith,
) -> None:
    gateway = gateway_with(**TWO_THREADS)
    pages = {"surface": "inference", "route": "pages"}
    before = metrics(gateway).sum("svc_requests_total", **pages)
    impatient = Organization.objects.create(name="impatient")
    person = sign_in(replace(gateway, organization=impatient))
    with writes_blocked():
        first = threading.Thread(target=make_key, args=(person,))
        first.start()
        until(lambda: metrics(gateway).sum("svc_pages_in_flight") == 1)
        with contextlib.ExitStack() as stack:
            for _ in range(5):
                client = stack.enter_context(RawClient(gateway))
                client.head(f"cookie: {person.cookie}", line="GET /console/impatient/usage")
            until(lambda: metrics(gateway).sum("svc_pages_waiting") == 5)
        until(lambda: metrics(gateway).sum("svc_connections") <= 2)
    first.join()
    until(lambda: metrics(gateway).sum("svc_pages_waiting") == 0)

    # The page for the token and the new key; none of the disconnected clients'.
    assert metrics(gateway).sum("svc_requests_total", **pages) - before == 2


def test_forms_and_files_of_pages_work_through_the_gate(gateway: Gateway) -> None:
    made = make_key(sign_in(gateway))
    styles = [
        fetch(f"{gateway.url}/static/console.css", headers={"accept-encoding": coding})
        for coding in ("identity", "gzip")
    ]
    missing = fetch(f"{gateway.url}/static/nothing.css")

    assert made.status_code == 200
    assert re.search(r"svc_read_\w+", made.text)
    plain, compressed = styles
    assert (plain.status_code, compressed.status_code) == (200, 200)
    assert len(plain.content) == int(plain.headers["content-length"])
    assert int(compressed.headers["content-length"]) < len(plain.content) / 2
    assert compressed.content == plain.content
    assert missing.status_code == 404
