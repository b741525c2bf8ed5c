"""Fixtures of the console's page of voices."""

from __future__ import annotations

import pytest

from tests.support.live import Gateway
from tests.support.pages.console import console, organization, person, stranger
from tests.support.pages.signed_in import SignedIn, sign_in

__all__ = ["console", "organization", "person", "stranger"]


@pytest.fixture
def signed_in(gateway: Gateway) -> SignedIn:
    """A person of the gateway's organization, in the console."""
    return sign_in(gateway)
