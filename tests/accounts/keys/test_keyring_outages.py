"""The key ring while its database is away, slow or asked by many at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from accounts.keys import keys
from accounts.keys.keyring import Keyring
from accounts.keys.keys import NewKey
from accounts.models import Organization, Scope
from svc_project.lib.errors import InternalError, InvalidCredential
from tests.accounts.keys.test_keyring import ALL
from tests.support.servers.database_outage import database_outage


@pytest.mark.django_db(transaction=True)
def test_during_an_outage_known_keys_work_and_unknown_ones_get_a_server_error(
    keyring: Keyring, organization: Organization, settings: Settings
) -> None:
    settings.SVC_KEY_CACHE_SECONDS = 0.0
    known = f"Bearer {keys.mint(organization, Scope.READ).secret}"
    unseen = f"Bearer {keys.mint(organization, Scope.READ).secret}"
    keyring.authenticate_sync(known, ALL)
    connection.close()
    with database_outage():
        assert keyring.authenticate_sync(known, ALL)
        with pytest.raises(InternalError):
            keyring.authenticate_sync(unseen, ALL)
        with pytest.raises(InvalidCredential):
            keyring.authenticate_sync("Bearer mistyped", ALL)
        settings.SVC_KEY_OUTAGE_SECONDS = 0.0
        with pytest.raises(InternalError):
            keyring.authenticate_sync(known, ALL)
    connection.close()
    assert keyring.authenticate_sync(known, ALL)
    assert keyring.authenticate_sync(unseen, ALL)


@pytest.mark.django_db(transaction=True)
async def test_an_outage_does_not_block_the_event_loop(
    keyring: Keyring, minted: list[NewKey], settings: Settings
) -> None:
    settings.SVC_KEY_CACHE_SECONDS = 0.0
    known, unseen = (f"Bearer {new.secret}" for new in minted[:2])
    await keyring.authenticate(known, ALL)
    await asyncio.to_thread(keyring.close)
    with database_outage():
        assert await keyring.authenticate(known, ALL)
        began = time.monotonic()
        for _ in range(100):
            await keyring.authenticate(known, ALL)
        assert time.monotonic() - began < 0.5
        with pytest.raises(InternalError):
            await keyring.authenticate(unseen, ALL)
        settings.SVC_KEY_OUTAGE_SECONDS = 0.0
        with pytest.raises(InternalError):
            await keyring.authenticate(known, ALL)
    assert await keyring.authenticate(known, ALL)
    assert await keyring.authenticate(unseen, ALL)


@pytest.mark.django_db(transaction=True)
async def test_a_database_that_hangs_delays_a_known_key_once_and_by_a_second_at_most(
    keyring: Keyring,
    minted: list[NewKey],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.SVC_KEY_CACHE_SECONDS = 0.0
    header = f"Bearer {minted[0].secret}"
    principal = await keyring.authenticate(header, ALL)
    answers = threading.Event()
    verify = keyring._lookups._look_up

    def hanging(secrets: Sequence[str]) -> Any:
        answers.wait(30)
        return verify(secrets)

    monkeypatch.setattr(keyring._lookups, "_look_up", hanging)
    try:
        began = time.monotonic()
        for _ in range(20):
            assert await keyring.authenticate(header, ALL) is principal
        assert 0.9 < time.monotonic() - began < 2.0
    finally:
        answers.set()
    await asyncio.to_thread(keyring.close)
    assert await keyring.authenticate(header, ALL) is not principal, "looked up again by now"


@pytest.mark.django_db(transaction=True)
async def test_a_thousand_callers_with_new_keys_share_a_few_queries(
    keyring: Keyring, minted: list[NewKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    verify = keyring._lookups._look_up

    def counted(secrets: Sequence[str]) -> Any:
        batches.append(len(secrets))
        return verify(secrets)

    monkeypatch.setattr(keyring._lookups, "_look_up", counted)
    principals = await asyncio.gather(
        *(keyring.authenticate(f"Bearer {minted[i % 10].secret}", ALL) for i in range(1000))
    )
    assert {p.api_key_id for p in principals} == {str(m.api_key.pk) for m in minted}
    assert len(batches) <= 10


@pytest.mark.django_db(transaction=True)
async def test_a_cancelled_caller_does_not_cancel_the_look_up_of_others(
    keyring: Keyring, minted: list[NewKey]
) -> None:
    header = f"Bearer {minted[0].secret}"
    callers = [asyncio.create_task(keyring.authenticate(header, ALL)) for _ in range(3)]
    await asyncio.sleep(0)
    callers[0].cancel()
    answers = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert answers[1] == answers[2] == await keyring.authenticate(header, ALL)
