"""One-time links with which people set a new password, and the mails that carry them.

A link is Django's: it ends after ``PASSWORD_RESET_TIMEOUT`` seconds, with the next login, and when
the password changes; besides, when the user becomes an operator or is one no longer.
"""

from __future__ import annotations

import logging
import queue
from datetime import datetime, timedelta
from smtplib import SMTPException
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.mail import send_mail
from django.db import Error
from django.http import HttpRequest
from django.http.request import split_domain_port
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from accounts.audit import trail
from accounts.models import User
from core import clock
from core.clock import iso_milliseconds
from core.database.threads import DatabaseThread, keep_usable

log = logging.getLogger(__name__)

_MOST_WAITING: Final = 100


class _Tokens(PasswordResetTokenGenerator):
    """An admin key may have the links of users, and must not open the account of an operator with one."""

    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        value = super()._make_hash_value(user, timestamp)
        is_operator = user.is_staff or user.is_superuser
        return f"{value} of an operator" if is_operator else value


tokens: Final = _Tokens()


def give(user: User, request: HttpRequest) -> tuple[str, datetime]:
    """A one-time link for ``user``, and when it ends, for whoever sent ``request``; the audit log has it.

    It is at ``SVC_PUBLIC_URL``, or at the address to which ``request`` was sent.
    """
    until = clock.now() + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
    trail.record("given a one-time link", user, {"until": (None, iso_milliseconds(until))})
    return _link(user, settings.SVC_PUBLIC_URL or request.build_absolute_uri("/")), until


def mailed_address(request: HttpRequest) -> str | None:
    """The address at which mailed links are: ``SVC_PUBLIC_URL``, or that of ``request``.

    Anybody can ask for a mail to somebody else, with any ``Host``. Without the setting it is None
    unless ``ALLOWED_HOSTS`` has the name itself, not by a wildcard, and the port is this server's.
    """
    if settings.SVC_PUBLIC_URL:
        return str(settings.SVC_PUBLIC_URL)
    name, port = split_domain_port(request.get_host())
    is_named = name in {each.lower() for each in settings.ALLOWED_HOSTS if each[:1] != "."}
    if not is_named or port not in ("", request.META.get("SERVER_PORT")):
        return None
    return request.build_absolute_uri("/")


class ResetMails:
    """Sends links in a thread of its own, at most ``_MOST_WAITING`` waiting.

    The request that asked never waits for it, so that its duration is the same whether there is an
    account or not.
    """

    def __init__(self) -> None:
        self._asked: queue.Queue[tuple[str, str] | None] = queue.Queue(_MOST_WAITING)
        self._thread = DatabaseThread("reset-mails", self._work)

    def ask(self, email: str, address: str) -> None:
        """Send a link at ``address`` to the account ``email``, if there is one that can log in."""
        try:
            self._asked.put_nowait((email, address))
        except queue.Full:
            log.warning("a mail with a link is not sent: %d are waiting", _MOST_WAITING)
        else:
            self._thread.ensure()

    def close(self) -> None:
        """End the thread after the mails that wait, for which it has some seconds."""
        if self._thread.is_running and not self._asked.full():
            self._asked.put_nowait(None)
        self._thread.join()

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            try:
                keep_usable()
                _send(*asked)
            except (SMTPException, OSError, Error) as error:
                log.error("a mail with a link was not sent: %s", type(error).__name__)


def _send(email: str, address: str) -> None:
    user = User.objects.filter(email=email.strip().lower(), is_active=True).first()
    if user is None or not user.has_usable_password():
        return
    hours = settings.PASSWORD_RESET_TIMEOUT // 3600
    shown = {"user": user, "link": _link(user, address), "hours": hours}
    text = render_to_string("console/password_mail.txt", shown)
    send_mail("Set a new password", text, None, [user.email])


def _link(user: User, address: str) -> str:
    token = tokens.make_token(user)
    place = reverse(
        "console-password-set", args=(urlsafe_base64_encode(force_bytes(user.pk)), token)
    )
    return address.rstrip("/") + place


reset_mails = ResetMails()
"""The mails of this process."""
