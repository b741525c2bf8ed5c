"""An operator who may do everything."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tests.support.pages.admin_forms import logged_in


@pytest.fixture
def operator(db: None, settings: Any) -> Client:
    settings.WHITENOISE_AUTOREFRESH = True
    return logged_in(User.objects.create_superuser("operator@svc.example", "x"))
