"""The audit log: who changed what, from where, written in the transaction that changes it.

``watch`` registers a model; each save and deletion of one of its rows is then recorded, whether it
came from an admin form, a page of the console or a command. Changes past the models
(``QuerySet.update``, plain SQL) are not seen, and this project makes none to a watched column. A
module that makes another important change calls ``record``.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from django.contrib.auth.models import Group
from django.db import models
from django.db.models.signals import m2m_changed, post_save, pre_delete, pre_save
from django.http import HttpRequest, HttpResponseBase

from accounts.models import AdminKey, ApiKey, AuditEntry, Membership, Organization, Role, User
from accounts.models.security import Source
from core.api.client_address import client_address
from core.clock import iso_milliseconds

Facts = Mapping[str, Any]
Verb = Callable[[Facts, Facts], str | None]
"""Names a change by its values before and after; ``None`` leaves it a plain "changed"."""

NOT_SHOWN = "not shown"
"""Replaces both values of a changed secret."""

ACTOR: Final = "svc_audit_actor"
"""The attribute of a request with the name of an actor who is no user: the admin key."""

_PROGRAMS = frozenset({"svc", "manage.py", "__main__.py", "django-admin"})
_BEFORE = "_audit_before"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who acts, by which interface, from which address."""

    actor: str
    source: Source
    address: str | None = None


_origin: ContextVar[Callable[[], Origin] | None] = ContextVar("audit_origin", default=None)
_named: ContextVar[tuple[str, Mapping[str, Any]] | None] = ContextVar("audit_verb", default=None)


class AuditMiddleware:
    """Sets the origin of a request's changes; placed after the middleware that finds its user."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with acting(lambda: _origin_of(request)):
            return self.get_response(request)


@contextmanager
def acting(origin: Callable[[], Origin]) -> Iterator[None]:
    """Attribute changes recorded inside to ``origin``, which is called on the first one."""
    token = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(token)


@contextmanager
def named(verb: str, **facts: str) -> Iterator[None]:
    """Record changes inside under the name ``verb``, with ``facts`` added.

    For changes whose values do not show their meaning.
    """
    token = _named.set((verb, {name: (None, fact) for name, fact in facts.items()}))
    try:
        yield
    finally:
        _named.reset(token)


def record_values(verb: str, subject: models.Model, *columns: str) -> None:
    """Write an entry about the use of ``subject``, with the values of ``columns``."""
    record(verb, subject, {name: (None, getattr(subject, name)) for name in columns})


def record(
    verb: str,
    subject: models.Model,
    changes: Mapping[str, tuple[Any, Any]],
    *,
    origin: Origin | None = None,
) -> None:
    """Write one entry now, in the current transaction.

    ``changes`` maps fields to values before and after, fit for JSON. ``origin`` is needed only
    outside of requests and commands.
    """
    origin = origin or (_origin.get() or _outside)()
    AuditEntry.objects.create(
        actor=origin.actor,
        source=origin.source,
        address=origin.address,
        verb=verb,
        kind=str(subject._meta.verbose_name),
        subject_id=str(subject.pk),
        subject=str(subject)[:400],
        organization_id=_organization_of(subject),
        changes={name: list(pair) for name, pair in changes.items()},
    )


def watch(
    model: type[models.Model],
    *,
    ignored: frozenset[str] = frozenset(),
    hidden: frozenset[str] = frozenset(),
    verb: Verb | None = None,
) -> None:
    """Record every creation, change and deletion of a row of ``model``.

    ``ignored``: fields that no person decides about. ``hidden``: fields with secret values, whose
    change is recorded without the values.
    """
    watched = _Watched(model, ignored, hidden, verb)
    for signal, receiver in (
        (pre_save, watched.before),
        (post_save, watched.after),
        (pre_delete, watched.deleted),
    ):
        signal.connect(receiver, sender=model, weak=False, dispatch_uid=f"audit {model._meta}")


class _Watched:
    """The receivers of a model's signals."""

    def __init__(
        self,
        model: type[models.Model],
        ignored: frozenset[str],
        hidden: frozenset[str],
        verb: Verb | None,
    ) -> None:
        self._model = model
        self._hidden = hidden
        self._verb = verb
        self._columns = [
            field
            for field in model._meta.concrete_fields
            if field.name not in ignored and not field.primary_key
        ]
        self._names = {name for field in self._columns for name in (field.name, field.attname)}

    def before(
        self, instance: models.Model, update_fields: Any, *, raw: bool = False, **_: Any
    ) -> None:
        instance.__dict__.pop(_BEFORE, None)
        if raw or instance._state.adding or not _touches(update_fields, self._names):
            return
        stored = self._model._base_manager.filter(pk=instance.pk).first()
        instance.__dict__[_BEFORE] = self._facts(stored) if stored is not None else {}

    def after(
        self, instance: models.Model, *, created: bool = False, raw: bool = False, **_: Any
    ) -> None:
        was = instance.__dict__.pop(_BEFORE, {} if created else None)
        if raw or was is None:
            return
        # Read again: an unsaved value may be of another type than what the database made of it.
        stored = self._model._base_manager.get(pk=instance.pk)
        now = self._facts(stored)
        changes = _differences(was, now, self._hidden)
        if changes or created:
            plain = "created" if created else "changed"
            special = self._verb(was, now) if self._verb is not None else None
            name, more = _named.get() or (special or plain, {})
            record(name, stored, {**changes, **more})

    def deleted(self, instance: models.Model, **_: Any) -> None:
        record("deleted", instance, _differences(self._facts(instance), {}, self._hidden))

    def _facts(self, row: models.Model) -> dict[str, Any]:
        return {field.name: _fact(row, field) for field in self._columns}


def _touches(update_fields: Any, names: set[str]) -> bool:
    return update_fields is None or bool(names & set(update_fields))


def _differences(was: Facts, now: Facts, hidden: frozenset[str]) -> dict[str, tuple[Any, Any]]:
    found = {
        name: (was.get(name), now.get(name))
        for name in {**was, **now}
        if was.get(name) != now.get(name)
    }
    return {
        name: (NOT_SHOWN, NOT_SHOWN) if name in hidden else pair for name, pair in found.items()
    }


def _fact(row: models.Model, field: models.Field[Any, Any]) -> Any:
    """The value of ``field`` for JSON; for a reference, its name and id."""
    value = getattr(row, field.attname)
    if field.is_relation and value is not None:
        return f"{getattr(row, field.name)} ({value})"
    if value is None or isinstance(value, (bool, int, float, str, list, dict)):
        return value
    if isinstance(value, Decimal):
        return f"{value:f}"  # without an exponent, which str has for 0.0000001
    return iso_milliseconds(value) if isinstance(value, datetime) else str(value)


def _organization_of(subject: models.Model) -> uuid.UUID | None:
    if isinstance(subject, Organization):
        return subject.pk
    found = getattr(subject, "organization_id", None)
    return found if isinstance(found, uuid.UUID) else None


def _origin_of(request: HttpRequest) -> Origin:
    doors = (("/admin/", Source.ADMIN), ("/console/", Source.CONSOLE))
    source = next((door for path, door in doors if request.path.startswith(path)), Source.API)
    actor = getattr(request, ACTOR, None)
    if actor is None:
        actor = request.user.email if isinstance(request.user, User) else "nobody"
    return Origin(actor, source, client_address(request))


def _outside() -> Origin:
    """The origin outside of a request: the command that this process runs, if any."""
    if Path(sys.argv[0]).name in _PROGRAMS and len(sys.argv) > 1:
        return Origin(f"command:{sys.argv[1]}"[:300], Source.COMMAND)
    return Origin("system", Source.SYSTEM)


def watch_accounts() -> None:
    """Register the models of this app; called once, when the app is ready."""
    watch(Organization, ignored=frozenset({"created_at", "version"}), verb=_organization)
    watch(
        User,
        ignored=frozenset({"created_at", "last_login"}),
        hidden=frozenset({"password"}),
        verb=_user,
    )
    watch(Membership, ignored=frozenset({"created_at"}), verb=_membership)
    watch(
        ApiKey,
        ignored=frozenset({"created_at", "last_used_at", "digest", "pepper", "version"}),
        verb=_key,
    )
    watch(
        AdminKey,
        ignored=frozenset({"created_at", "digest", "pepper"}),
        verb=_key,
    )
    watch(Group)
    _watch_members(User.groups.through, "groups")
    _watch_members(User.user_permissions.through, "user_permissions")
    _watch_members(Group.permissions.through, "permissions")


def _organization(was: Facts, now: Facts) -> str | None:
    if was and was["disabled_at"] != now["disabled_at"]:
        return "disabled" if now["disabled_at"] else "enabled"
    return None


def _user(was: Facts, now: Facts) -> str | None:
    for field, granted, taken in (
        ("is_superuser", "made operator with every permission", "no longer has every permission"),
        ("is_staff", "made operator", "no longer operator"),
        ("is_active", "", "deactivated"),
    ):
        if now[field] and not was.get(field) and granted:
            return granted
        if was.get(field) and not now[field]:
            return taken
    if was and was["password"] != now["password"]:
        return "given a new password"
    return None


def _membership(was: Facts, now: Facts) -> str | None:
    if was and was["role"] != now["role"]:
        return "made an owner" if now["role"] == Role.OWNER else "made a member"
    return None


def _key(was: Facts, now: Facts) -> str | None:
    if not was:
        return "minted"
    return "revoked" if now["revoked_at"] and not was["revoked_at"] else None


def _watch_members(through: type[models.Model], name: str) -> None:
    """Record additions to and removals from the set ``name`` of a user or group."""

    def changed(
        instance: models.Model, action: str, pk_set: Any, model: Any, reverse: bool, **_: Any
    ) -> None:
        if action == "post_add" and pk_set:
            _record_change(instance, [], _names(model, pk_set))
        elif action == "post_remove" and pk_set:
            _record_change(instance, _names(model, pk_set), [])
        elif action == "pre_clear" and not reverse:
            _record_change(instance, [str(each) for each in getattr(instance, name).all()], [])

    def _record_change(instance: models.Model, was: list[str], now: list[str]) -> None:
        if was or now:
            record("permissions changed", instance, {name: (was, now)})

    m2m_changed.connect(changed, sender=through, weak=False, dispatch_uid=f"audit {name}")


def _names(model: type[models.Model], keys: Iterable[Any]) -> list[str]:
    return [str(each) for each in model._default_manager.filter(pk__in=keys)]
