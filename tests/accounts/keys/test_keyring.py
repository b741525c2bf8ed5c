"""Authentication by key: valid credentials, and how changes reach a process that holds all keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from accounts.changes import ChangeWatcher
from accounts.keys import keys
from accounts.keys.header import authorization
from accounts.keys.keyring import Keyring, RateLimits, SpeechLimits
from accounts.keys.keys import KeyLimits
from accounts.models import ApiKey, Organization, Scope
from core import clock
from core.errors import InvalidCredential, error_body
from core.sharing.priority import Priority
from tests.support.until import until

ALL = frozenset(Scope)
INFERENCE = frozenset({Scope.INFERENCE})


def invented(prefix: str = "svc_live_", body: str = "0" * 30) -> str:
    """A key that was never made, with a valid checksum."""
    return prefix + body + keys.checksum(prefix + body)


def refused(keyring: Keyring, secret: str) -> bool:
    try:
        keyring.authenticate_sync(f"Bearer {secret}", ALL)
    except InvalidCredential:
        return True
    return False


@contextmanager
def queries(expected: int) -> Iterator[None]:
    with CaptureQueriesContext(connection) as captured:
        yield
    assert len(captured) == expected, captured.captured_queries


def test_a_principal_carries_everything_the_hot_path_needs(
    keyring: Keyring, organization: Organization
) -> None:
    new = keys.mint(organization, Scope.INFERENCE, limits=KeyLimits(3, 4))
    principal = keyring.authenticate_sync(f"Bearer {new.secret}", INFERENCE)
    assert principal.organization_id == str(organization.pk)
    assert principal.api_key_id == str(new.api_key.pk)
    assert principal.scope is Scope.INFERENCE
    assert principal.plan == "standard"
    assert principal.organization_limits == RateLimits(60, None)
    assert principal.key_limits == RateLimits(3, 4)
    assert principal.speech_limits == SpeechLimits(5, organization.speech_characters_per_day)


@pytest.mark.parametrize(
    ("of_organization", "of_key", "expected"),
    [
        (None, None, Priority.STANDARD),
        ("interactive", None, Priority.INTERACTIVE),
        ("interactive", "batch", Priority.BATCH),
        ("batch", "standard", Priority.STANDARD),
        ("batch", "interactive", Priority.INTERACTIVE),
        ("of_tomorrow", None, Priority.STANDARD),
    ],
)
def test_the_class_of_a_key_counts_before_its_organizations(
    keyring: Keyring,
    organization: Organization,
    of_organization: str | None,
    of_key: str | None,
    expected: Priority,
) -> None:
    if of_organization is not None:
        Organization.objects.update(priority=of_organization)
    new = keys.mint(organization, Scope.INFERENCE, limits=KeyLimits(priority=of_key))
    with queries(1):
        principal = keyring.authenticate_sync(f"Bearer {new.secret}", INFERENCE)
    assert principal.priority is expected


@pytest.mark.parametrize("owned", list(Scope))
@pytest.mark.parametrize("wanted", list(Scope))
def test_a_key_calls_only_the_endpoints_of_its_scope(
    keyring: Keyring, organization: Organization, owned: Scope, wanted: Scope
) -> None:
    header = f"Bearer {keys.mint(organization, owned).secret}"
    if owned is wanted:
        assert keyring.authenticate_sync(header, frozenset({wanted})).scope is owned
    else:
        with pytest.raises(InvalidCredential):
            keyring.authenticate_sync(header, frozenset({wanted}))


def test_every_credential_problem_gets_one_and_the_same_answer(
    keyring: Keyring, organization: Organization
) -> None:
    good = keys.mint(organization, Scope.INFERENCE).secret
    revoked = keys.mint(organization, Scope.INFERENCE)
    keys.revoke(revoked.api_key)
    expired = keys.mint(organization, Scope.INFERENCE)
    keys.rotate(expired.api_key)
    closed = Organization.objects.create(name="Closed", disabled_at=clock.now())
    wrong: dict[str, str | bytes | None] = {
        "missing": None,
        "empty": "",
        "no scheme": good,
        "no token": "Bearer",
        "empty token": "Bearer ",
        "other scheme": f"Basic {good}",
        "scheme runs on": f"Bearer{good}",
        "tab": f"Bearer\t{good}",
        "two spaces": f"Bearer  {good}",
        "two tokens": f"Bearer {good} {good}",
        "two headers joined": f"Bearer {good},Bearer {good}",
        "trailing space": f"Bearer {good} ",
        "trailing newline": f"Bearer {good}\n",
        "trailing NUL": f"Bearer {good}\0",
        "not ASCII": f"Bearer {good}é",
        "not UTF-8": b"Bearer \xff\xfe",
        "injection": "Bearer ' OR 1=1--",
        "cut off": f"Bearer {good[:-1]}",
        "one character changed": f"Bearer {good[:-1]}{'a' if good[-1] != 'a' else 'b'}",
        "well formed but unknown": f"Bearer {invented()}",
        "revoked": f"Bearer {revoked.secret}",
        "expired": f"Bearer {expired.secret}",
        "wrong scope": f"Bearer {keys.mint(organization, Scope.READ).secret}",
        "disabled organization": f"Bearer {keys.mint(closed, Scope.INFERENCE).secret}",
    }
    answers = set()
    for header in wrong.values():
        with pytest.raises(InvalidCredential) as refusal:
            keyring.authenticate_sync(header, INFERENCE)
        error = refusal.value
        answers.add((error.status, error_body(error), tuple(error.headers.items())))
    [(status, body, headers)] = answers
    assert status == 401
    assert b'"type":"authentication_error","param":null,"code":null' in body
    assert headers == (("www-authenticate", "Bearer"),)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_the_scheme_is_read_in_any_case(
    keyring: Keyring, organization: Organization, scheme: str
) -> None:
    secret = keys.mint(organization, Scope.SPEECH).secret
    assert keyring.authenticate_sync(f"{scheme} {secret}", ALL)
    assert keyring.authenticate_sync(f"{scheme} {secret}".encode(), ALL)


def test_two_authorization_headers_are_a_credential_problem() -> None:
    header = (b"authorization", b"Bearer a")
    assert authorization([(b"host", b"x")]) is None
    assert authorization([(b"host", b"x"), header]) == b"Bearer a"
    with pytest.raises(InvalidCredential):
        authorization([header, header])


def test_a_mistyped_key_costs_no_query(keyring: Keyring, organization: Organization) -> None:
    secret = keys.mint(organization, Scope.READ).secret
    with queries(0), pytest.raises(InvalidCredential):
        keyring.authenticate_sync(f"Bearer {secret[:-1]}!", ALL)


def test_a_process_without_the_keys_reads_the_one_that_it_needs(
    keyring: Keyring, organization: Organization
) -> None:
    header = f"Bearer {keys.mint(organization, Scope.READ).secret}"
    with queries(1):
        assert keyring.authenticate_sync(header, ALL)


def test_a_key_in_memory_costs_no_query(
    keyring: Keyring, watcher: ChangeWatcher, organization: Organization
) -> None:
    header = f"Bearer {keys.mint(organization, Scope.READ).secret}"
    watcher.poll()
    with queries(0):
        first = keyring.authenticate_sync(header, ALL)
        assert all(keyring.authenticate_sync(header, ALL) is first for _ in range(10))


def test_the_expiry_of_a_key_is_checked_at_each_use(
    keyring: Keyring, watcher: ChangeWatcher, organization: Organization
) -> None:
    old = keys.mint(organization, Scope.READ)
    new = keys.rotate(old.api_key, clock.now() + timedelta(seconds=2))
    watcher.poll()
    header = f"Bearer {old.secret}"
    assert keyring.authenticate_sync(header, ALL)
    assert keyring.authenticate_sync(f"Bearer {new.secret}", ALL)

    until(lambda: refused(keyring, old.secret))
    watcher.poll()
    with queries(0):
        assert keyring.authenticate_sync(f"Bearer {new.secret}", ALL)


def test_older_peppers_verify_until_they_are_taken_out(
    keyring: Keyring, watcher: ChangeWatcher, organization: Organization, settings: Settings
) -> None:
    settings.SVC_KEY_PEPPERS = ["first"]
    old = keys.mint(organization, Scope.READ)
    settings.SVC_KEY_PEPPERS = ["second", "first"]
    new = keys.mint(organization, Scope.READ)
    assert old.api_key.pepper != new.api_key.pepper
    watcher.poll()
    with queries(0):
        for secret in (old.secret, new.secret):
            assert keyring.authenticate_sync(f"Bearer {secret}", ALL)
    settings.SVC_KEY_PEPPERS = ["second"]
    assert keyring.authenticate_sync(f"Bearer {new.secret}", ALL)
    with pytest.raises(InvalidCredential):
        keyring.authenticate_sync(f"Bearer {old.secret}", ALL)


@pytest.mark.django_db(transaction=True)
def test_use_is_written_once_a_minute_and_moves_no_stamp(
    keyring: Keyring, watcher: ChangeWatcher, organization: Organization
) -> None:
    new = keys.mint(organization, Scope.READ)
    watcher.poll()
    began = clock.now()
    keyring.authenticate_sync(f"Bearer {new.secret}", ALL)
    keyring.close()
    new.api_key.refresh_from_db()
    first = new.api_key.last_used_at
    assert first is not None
    assert began <= first + timedelta(seconds=1)
    keyring.authenticate_sync(f"Bearer {new.secret}", ALL)
    # The key is read anew, by a change and as a whole.
    ApiKey.objects.filter(pk=new.api_key.pk).update(tokens_per_minute=9)
    watcher.poll()
    assert keyring.authenticate_sync(f"Bearer {new.secret}", ALL).key_limits.tokens_per_minute == 9
    ApiKey.objects.filter(pk=new.api_key.pk).update(tokens_per_minute=8)
    ApiKey.objects.exclude(pk=new.api_key.pk).delete()
    watcher.poll()
    assert keyring.authenticate_sync(f"Bearer {new.secret}", ALL).key_limits.tokens_per_minute == 8
    keyring.close()
    new.api_key.refresh_from_db()
    assert new.api_key.last_used_at == first
    with queries(1):
        watcher.poll()
        keyring.authenticate_sync(f"Bearer {new.secret}", ALL)


@pytest.mark.django_db(transaction=True)
def test_a_refused_use_is_not_written(keyring: Keyring, organization: Organization) -> None:
    new = keys.mint(organization, Scope.READ)
    with pytest.raises(InvalidCredential):
        keyring.authenticate_sync(f"Bearer {new.secret}", INFERENCE)
    keyring.close()
    assert ApiKey.objects.get().last_used_at is None
