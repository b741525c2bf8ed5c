"""Errors outside of the console: pages for browsers, the API's JSON for clients."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from django.test import Client

from accounts.console import base

BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"


def test_a_browser_gets_a_page_and_a_client_json(client: Client) -> None:
    page = client.get("/nowhere", headers={"accept": BROWSER})
    body = client.get("/nowhere", headers={"accept": "*/*"})

    assert page.status_code == body.status_code == 404
    assert "There is nothing at this address" in page.content.decode()
    assert page["x-request-id"] in page.content.decode()
    assert "default-src 'none'" in page["content-security-policy"]
    assert body.json()["error"]["type"] == "not_found_error"


@pytest.mark.parametrize(
    ("failure", "status", "said"),
    [
        (OperationalError("away"), 503, "The database does not answer"),
        (RuntimeError("a secret"), 500, "This page could not be made"),
    ],
)
def test_a_failure_is_a_page_with_its_request_id(
    console: Client, monkeypatch: pytest.MonkeyPatch, failure: Exception, status: int, said: str
) -> None:
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(base, "shown_organizations", fail)
    console.raise_request_exception = False

    page = console.get("/console/keys", headers={"accept": BROWSER})
    body = console.get("/console/keys")

    assert page.status_code == body.status_code == status
    shown = page.content.decode()
    assert said in shown
    assert page["x-request-id"] in shown
    assert "a secret" not in shown
    assert "error" in body.json()
