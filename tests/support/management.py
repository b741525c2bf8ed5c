"""A client of the management API, with an admin key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from django.test import Client

from accounts.keys import admin_keys

Ask = Callable[..., Any]


@pytest.fixture
def admin_key(db: None) -> admin_keys.NewAdminKey:
    return admin_keys.mint("terraform")


@pytest.fixture
def ask(client: Client, admin_key: admin_keys.NewAdminKey) -> Ask:
    """Send one request below /manage/v1/, with the admin key unless another secret is given."""

    def send(method: str, path: str, body: Any = None, secret: str = admin_key.secret) -> Any:
        return client.generic(
            method,
            f"/manage/v1/{path}",
            b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body),
            headers={"authorization": f"Bearer {secret}"},
        )

    return send
