"""Accounts of the speech surface of a live gateway."""

from __future__ import annotations

import uuid

from accounts.keys.keys import mint
from accounts.models import Organization, Plan, Scope
from tests.support.live import Gateway
from tests.support.speech.caller import SpeechAccount


def speech_account(gateway: Gateway, plan: Plan = Plan.ENTERPRISE, **limits: int) -> SpeechAccount:
    """Another account of a gateway."""
    unlimited = {"speech_requests_per_minute": None, "speech_characters_per_day": None}
    organization = Organization.objects.create(
        name=f"speech {uuid.uuid4()}", plan=plan, **{**unlimited, **limits}
    )
    return account_of(gateway, organization)


def account_of(gateway: Gateway, organization: Organization) -> SpeechAccount:
    """The account of ``organization``, with a new key."""
    minted = mint(organization, Scope.SPEECH, "test")
    return SpeechAccount(gateway, organization, minted.api_key, minted.secret)
