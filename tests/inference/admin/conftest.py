"""Fixtures of the admin of the catalog."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import User

PASSWORD = "correct horse battery"


@pytest.fixture
def operator() -> Client:
    user = User.objects.create_superuser("op@example.com", PASSWORD)
    client = Client()
    client.force_login(user)
    return client
