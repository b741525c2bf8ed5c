"""Fixtures of the usage summary."""

from __future__ import annotations

import uuid

import pytest

from accounts.keys import keys
from accounts.models import Organization, Scope
from tests.support.builders import traffic
from tests.support.builders.summary_ledger import Ledger


@pytest.fixture
def ledger(organization: Organization) -> Ledger:
    first = keys.mint(organization, Scope.INFERENCE, "first").api_key
    second = keys.mint(organization, Scope.INFERENCE).api_key
    departed = str(uuid.uuid4())
    ids = [str(first.pk), str(second.pk), departed]
    traffic.mixed(str(Organization.objects.create(name="Other").pk), ids, seed=2)
    return Ledger(traffic.mixed(str(organization.pk), ids), first, second, departed)
