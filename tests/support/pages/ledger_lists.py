"""Chats of a customer, and the admin's lists of them that a page's numbers lead to."""

from __future__ import annotations

import html
from datetime import timedelta
from typing import Any

from django.test import Client

from accounts.models import Organization
from core.clock import now
from tests.support.builders.receipts import receipt
from tests.support.ledger.commands import id_of
from usage.ledger import rows

FAILED: dict[str, Any] = {
    "outcome": "backend_timeout",
    "http_status": 504,
    "error_code": "backend_timeout",
}


def write(organization: Organization, number: int, *, days_ago: float = 0.1, **facts: Any) -> None:
    at = now() - timedelta(days=days_ago)
    owner = {"organization_id": str(organization.pk), "model_server": "gpu-1"}
    rows.insert([receipt(request_id=id_of(at), **owner, **facts) for _ in range(number)], at)


def listed(client: Client, address: str) -> int:
    answer = client.get(html.unescape(address))
    assert answer.status_code == 200
    return int(answer.context["cl"].result_count)
