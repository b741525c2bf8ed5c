"""The catalog of a running server, through its HTTP parser and with the public client."""

from __future__ import annotations

import pytest
from openai import NotFoundError

from tests.support.live import Gateway


def test_the_openai_client_reads_the_catalog(gateway: Gateway) -> None:
    client = gateway.openai()

    assert "acme/demo-8b" in [model.id for model in client.models.list()]
    assert client.models.retrieve("acme/demo-8b").owned_by == "svc"
    with pytest.raises(NotFoundError) as refused:
        client.models.retrieve("acme/unknown")
    assert refused.value.code == "model_not_found"
