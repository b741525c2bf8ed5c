"""Refused creations of clones count as refused requests, which end in 429."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.clients.raw_client import RawClient
from tests.support.live import Gateway
from tests.support.speech.client import new_client
from tests.support.until import until


def assert_refused_too_often(status: int, headers: dict[str, str]) -> None:
    assert status == 429
    assert headers["x-quota-reason"] == "refused_requests_per_minute"
    assert int(headers["retry-after"]) >= 1


def test_invalid_creations_and_names_that_are_taken_end_in_429_before_a_body_is_sent(
    start_gateway: Callable[..., Gateway],
) -> None:
    """An organization without a limit may have ten requests refused here."""
    strict = start_gateway(SVC_REFUSED_REQUESTS_PER_MINUTE="1")
    client = new_client(strict)
    answers = [client.create("Anna", audio_b64="#").status_code for _ in range(10)]
    assert answers == [400] * 10

    def unsent() -> tuple[int, dict[str, str]] | None:
        """The answer to a head whose body is not sent; a slow host refills a request meanwhile."""
        client.create("Anna", audio_b64="#")
        with RawClient(strict, strict.speech_port) as raw:
            raw.send(
                (
                    "POST /v1/voices HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 15000000\r\n"
                    f"authorization: Bearer {client.key}\r\n\r\n"
                ).encode()
            )
            raw.set_timeout(5)
            try:
                status, headers, _ = raw.answer()
            except TimeoutError:
                return None
        return status, headers

    assert_refused_too_often(*until(unsent))

    client = new_client(strict)
    assert client.create("Anna").status_code == 201
    assert client.create("anna").status_code == 409
    last = until(lambda: found if (found := client.create("anna")).status_code == 429 else None)
    assert_refused_too_often(last.status_code, dict(last.headers))
