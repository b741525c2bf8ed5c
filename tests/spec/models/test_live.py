"""The catalog of a running server, through its HTTP parser and with the public client."""

from __future__ import annotations

import json
from http.client import HTTPConnection

import pytest
from openai import NotFoundError

from tests.support.live import Gateway


@pytest.mark.parametrize("segment", ["acme/demo-8b", "acme%2Fdemo-8b", "acme%2fdemo-8b"])
def test_a_running_server_takes_the_slash_raw_and_encoded(gateway: Gateway, segment: str) -> None:
    connection = HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        connection.request("GET", f"/v1/models/{segment}", headers=gateway.headers)
        answer = connection.getresponse()
        body = json.loads(answer.read())
    finally:
        connection.close()

    assert (answer.status, body["id"]) == (200, "acme/demo-8b")


def test_the_openai_client_reads_the_catalog(gateway: Gateway) -> None:
    client = gateway.openai()

    assert "acme/demo-8b" in [model.id for model in client.models.list()]
    assert client.models.retrieve("acme/demo-8b").owned_by == "svc"
    with pytest.raises(NotFoundError) as refused:
        client.models.retrieve("acme/unknown")
    assert refused.value.code == "model_not_found"
