"""What one process keeps of refused requests: no more than its bounds, and nobody's in place of another's."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import DataError
from pytest_django.fixtures import Settings

from accounts.keys.keyring import keyring
from accounts.keys.keys import mint, revoke
from accounts.keys.refusals import Refusal as Refused
from accounts.models import Organization, Scope
from core.clock import now
from tests.support.builders import receipts
from usage.models import Refusal, RefusalCount
from usage.refusals import newest
from usage.refusals.recorder import Recorder, delete_expired

KEY = str(uuid.uuid4())


def refusal(organization_id: str, seconds: int = 0, **facts: Any) -> Refused:
    moment = now() + timedelta(seconds=seconds)
    said = {"api_key_id": KEY, "message": f"Refusal {seconds}", "occurred_at": moment}
    return receipts.refusal(organization_id, **{**said, **facts})


def test_who_floods_displaces_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest, "KEPT_NEWEST", 20)
    waiting = newest.Waiting(most=30)
    for quiet in ("a", "b"):
        for second in range(5):
            waiting.add(refusal(quiet, second))
    for second in range(1000):
        waiting.add(refusal("flood", second))
    for second in range(15):
        waiting.add(refusal("late", second))

    kept = waiting.take()

    assert len(kept) == 30
    assert [each.message for each in kept if each.organization_id == "a"] == [
        f"Refusal {second}" for second in range(5)
    ]
    assert [each.message for each in kept if each.organization_id == "flood"][-1] == "Refusal 999"
    assert waiting.dropped == 1025 - 30
    assert waiting.take() == []


def test_keys_of_nobody_displace_neither_each_other_nor_what_has_an_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = Recorder()
    monkeypatch.setattr(recorder._thread, "ensure", lambda: None)
    for second in range(5):
        recorder.refused(refusal(KEY, second))
        recorder.refused(refusal("", second, digests=("quiet",)))
    for second in range(1000):
        recorder.refused(refusal("", second, digests=("flood",)))
    batch = recorder._next_batch()
    assert batch is not None
    assert sum(each.digests == ("quiet",) for each in batch.newest) == 5
    recorder._batch = None
    recorder.refused(refusal(KEY))
    for number in range(2 * newest.MOST_UNKNOWN):
        recorder.refused(refusal("", digests=(f"invented {number}",)))

    batch = recorder._next_batch()

    assert batch is not None
    assert len(batch.newest) == 1 + newest.MOST_UNKNOWN
    assert batch.newest[0].organization_id == KEY


@pytest.mark.django_db
def test_the_newest_stay_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest, "KEPT_NEWEST", 3)
    recorder, flooding, quiet = Recorder(), str(uuid.uuid4()), str(uuid.uuid4())
    monkeypatch.setattr(recorder._thread, "ensure", lambda: None)
    for seconds in range(5):
        recorder.refused(refusal(flooding, seconds))
    recorder.refused(refusal(quiet))
    recorder.flush()
    recorder.refused(refusal(flooding, 5))

    recorder.flush()

    def messages(organization_id: str) -> list[str]:
        own = Refusal.objects.filter(organization_id=organization_id)
        return list(own.values_list("message", flat=True))

    assert messages(flooding) == ["Refusal 3", "Refusal 4", "Refusal 5"]
    assert messages(quiet) == ["Refusal 0"]
    counted = RefusalCount.objects.filter(organization_id=flooding, api_key_id=KEY)
    assert sum(counted.values_list("count", flat=True)) == 6

    assert delete_expired(now() + timedelta(days=101)) == 4
    assert not RefusalCount.objects.exists()


@pytest.mark.django_db
def test_what_the_database_cannot_take_does_not_hold_up_what_comes_after_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recorder, organization_id = Recorder(), str(uuid.uuid4())
    monkeypatch.setattr(recorder._thread, "ensure", lambda: None)
    recorder.refused(refusal(organization_id))
    with monkeypatch.context() as once:
        once.setattr(newest, "insert", Mock(side_effect=DataError))
        recorder.flush()
    recorder.refused(refusal(organization_id))
    recorder.flush()
    assert Refusal.objects.count() == 1
    assert "a batch of refusals is dropped: DataError" in caplog.text


@pytest.mark.django_db
def test_a_key_that_no_longer_works_has_an_owner_and_an_invented_one_has_none(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The key was made under an earlier pepper.
    organization = Organization.objects.create(name="Acme")
    revoked, invented = mint(organization, Scope.SPEECH), mint(organization, Scope.SPEECH)
    settings.SVC_KEY_PEPPERS = ["a-newer-pepper-of-32-characters-x", *settings.SVC_KEY_PEPPERS]
    revoke(revoked.api_key)
    invented.api_key.delete()
    recorder = Recorder()
    monkeypatch.setattr(recorder._thread, "ensure", lambda: None)
    for made in (revoked, invented):
        digests = keyring.owner_of(made.secret.encode())
        assert isinstance(digests, tuple)
        recorder.refused(refusal("", digests=digests, api_key_id="", error="invalid-credential"))

    recorder.flush()

    kept = Refusal.objects.get()
    assert (kept.organization_id, kept.api_key_id) == (organization.pk, revoked.api_key.pk)
    assert RefusalCount.objects.get().count == 1
    assert keyring.owner_of(b"no key at all") is None
