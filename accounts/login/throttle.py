"""Throttles guesses of passwords: waits that double, kept in the database for all workers.

Three ladders count failures of a login, or of the old password where people change their own: of the
account from that address, of the account from anywhere, and of the address for any account. A try
is charged before the password is checked, so that tries at the same time cannot pass together, and
refunded when the password was right.

An attacker cannot lock a user out: a browser that the user has logged in with before holds a
cookie, and has a ladder of its own instead (OWASP, "device cookies").
"""

from __future__ import annotations

import hmac
import logging
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest, HttpResponseBase
from django.utils.crypto import salted_hmac

from accounts.models import FailedLogins
from core import clock
from core.api.client_address import client_address

log = logging.getLogger(__name__)

RESET_AFTER = timedelta(hours=1)
"""The time without a failure after which a subject starts anew."""

DEVICE_DAYS = 180
_SALT = "accounts.login_throttle"
_PRUNED_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class Ladder:
    """``free`` failures cost nothing; the next wait is ``first`` seconds, doubling to ``longest``."""

    name: str
    free: int
    first: int
    longest: int

    def wait(self, failures: int) -> timedelta | None:
        """The wait after ``failures`` failures in a row."""
        beyond = failures - self.free
        if beyond < 0:
            return None
        return timedelta(seconds=min(self.first * 2 ** min(beyond, 30), self.longest))


ACCOUNT_HERE = Ladder("account and address", free=5, first=15, longest=900)
ACCOUNT = Ladder("account", free=20, first=15, longest=120)
ADDRESS = Ladder("address", free=40, first=15, longest=900)
DEVICE = Ladder("device", free=5, first=15, longest=900)
LINKS = Ladder("links of an account", free=3, first=60, longest=900)
LINKS_HERE = Ladder("links from an address", free=10, first=60, longest=900)

ADMIN_KEYS = Ladder("admin keys from an address", free=20, first=15, longest=900)


class TooManyLogins(Exception):
    """No try is allowed for another ``seconds``, which the message says in words."""

    def __init__(self, seconds: int, what: str = "failed logins") -> None:
        self.seconds = seconds
        minutes = math.ceil(seconds / 60)
        when = f"{seconds} seconds" if seconds < 120 else f"{minutes} minutes"
        super().__init__(f"Too many {what}. Try again in {when}.")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A charged try, to be refunded if the password was right."""

    forgiven: tuple[str, ...]
    """Subjects that start anew after a success."""
    refunded: tuple[str, ...]
    """Subjects that are refunded this one try: other accounts count there too."""
    charged_at: datetime

    def succeeded(self) -> None:
        """Refund the try. Tries of others charged meanwhile stay, and so does their wait."""
        FailedLogins.objects.filter(subject__in=self.forgiven).delete()
        refunded = FailedLogins.objects.filter(subject__in=self.refunded)
        refunded.filter(failed_at=self.charged_at).update(blocked_until=None)
        refunded.filter(count__gt=0).update(count=F("count") - 1)


def admit(request: HttpRequest, email: str) -> Attempt:
    """Charge one try of ``email`` from the address of ``request``. Raises ``TooManyLogins``.

    An address without an account is treated like one with an account.
    """
    account = email.strip().lower()
    now = clock.now()
    device = _device(request, account)
    place = _network(client_address(request))
    if device is not None:
        ladders = {_subject("device", device): DEVICE}
        attempt = Attempt(tuple(ladders), (), now)
    else:
        here = _subject("here", account, place)
        everywhere, address = _subject("account", account), _subject("address", place)
        ladders = {here: ACCOUNT_HERE, everywhere: ACCOUNT, address: ADDRESS}
        attempt = Attempt((here, everywhere), (address,), now)
    _charge(ladders, now)
    _prune(now)
    return attempt


def admit_change(request: HttpRequest, email: str) -> Attempt:
    """Charge one try of the old password of ``email``, which counts as a login does.

    Raises ``TooManyLogins``.
    """
    try:
        return admit(request, email)
    except TooManyLogins as error:
        raise TooManyLogins(error.seconds, "wrong passwords") from None


def admit_reset(request: HttpRequest, email: str) -> None:
    """Charge one request for a link to ``email``, whether or not it has an account.

    It never delays a login. Raises ``TooManyLogins``.
    """
    now = clock.now()
    account, place = email.strip().lower(), _network(client_address(request))
    ladders = {_subject("link", account): LINKS, _subject("link here", place): LINKS_HERE}
    try:
        _charge(ladders, now)
    except TooManyLogins as error:
        raise TooManyLogins(error.seconds, "requests for a link") from None
    _prune(now)


def charge_wrong_key(request: HttpRequest) -> None:
    """Charge one wrong admin key to the address of ``request``. Raises ``TooManyLogins``.

    A right key is never asked to wait, so nobody can lock an automation out.
    """
    now = clock.now()
    ladders = {_subject("admin key", _network(client_address(request))): ADMIN_KEYS}
    try:
        _charge(ladders, now)
    except TooManyLogins as error:
        raise TooManyLogins(error.seconds, "wrong admin keys") from None
    _prune(now)


def remember_device(response: HttpResponseBase, email: str) -> None:
    """Set the device cookie in a browser that has just logged in."""
    held = {"account": _subject("account", email.strip().lower()), "device": secrets.token_hex(16)}
    response.set_cookie(
        _cookie_name(),
        signing.dumps(held, salt=_SALT),
        max_age=timedelta(days=DEVICE_DAYS),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


@transaction.atomic
def _charge(ladders: dict[str, Ladder], now: datetime) -> None:
    # Made first, so that there is a row to lock; a refusal below rolls new ones back.
    FailedLogins.objects.bulk_create(
        [FailedLogins(subject=subject, failed_at=now) for subject in ladders],
        ignore_conflicts=True,
    )
    rows = list(
        FailedLogins.objects.select_for_update()
        .filter(subject__in=list(ladders))
        .order_by("subject")
    )
    waiting = [row for row in rows if row.blocked_until is not None and row.blocked_until > now]
    if waiting:
        longest = max(waiting, key=lambda row: row.blocked_until or now)
        left = (longest.blocked_until or now) - now
        log.warning("logins are throttled: %s", ladders[longest.subject].name)
        raise TooManyLogins(max(1, math.ceil(left.total_seconds())))
    for row in rows:
        row.count = 1 if now - row.failed_at > RESET_AFTER else row.count + 1
        wait = ladders[row.subject].wait(row.count)
        row.failed_at, row.blocked_until = now, now + wait if wait else None
        row.save(update_fields=["count", "failed_at", "blocked_until"])


def _prune(now: datetime) -> None:
    """Delete a few old rows, one statement each, so that no two prunings wait for each other."""
    old = FailedLogins.objects.filter(failed_at__lt=now - RESET_AFTER)
    for subject in list(old.values_list("subject", flat=True)[:_PRUNED_AT_ONCE]):
        old.filter(subject=subject).delete()


def account_of_device(cookies: Mapping[str, str]) -> str | None:
    """A digest of the account with which the browser logged in before; needs no database."""
    held = _held(cookies)
    return None if held is None else held[0]


def _device(request: HttpRequest, account: str) -> str | None:
    """The device in the request's cookie, when it was set for ``account``."""
    held = _held(request.COOKIES)
    if held is None:
        return None
    given, device = held
    return device if hmac.compare_digest(given, _subject("account", account)) else None


def _held(cookies: Mapping[str, str]) -> tuple[str, str] | None:
    """The account and the device in the device cookie, if this server set it."""
    try:
        held = signing.loads(
            cookies.get(_cookie_name(), ""), salt=_SALT, max_age=timedelta(days=DEVICE_DAYS)
        )
        return str(held["account"]), str(held["device"])
    except (signing.BadSignature, KeyError, TypeError):
        return None


def _cookie_name() -> str:
    return "__Host-device" if settings.SESSION_COOKIE_SECURE else "device"


def _network(address: str | None) -> str:
    """The part of an address that a client cannot easily change: for IPv6 the first 64 bits."""
    if address is None:
        return ""
    if isinstance(ip_address(address), IPv6Address):
        return str(ip_network(f"{address}/64", strict=False))
    return address


def _subject(kind: str, *parts: str) -> str:
    return salted_hmac(_SALT, "\0".join((kind, *parts)), algorithm="sha256").hexdigest()
