"""Fixtures of the keys."""

from __future__ import annotations

import pytest

from accounts.keys import keys
from accounts.keys.keys import NewKey
from accounts.models import Organization, Scope


@pytest.fixture
def minted(transactional_db: None, organization: Organization) -> list[NewKey]:
    """Ten keys that every thread can see."""
    return [keys.mint(organization, Scope.READ) for _ in range(10)]
