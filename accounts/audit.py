"""The audit log: who changed what, from where, written in the transaction that changes it.

A model whose rows matter is given to ``watch``; each save and deletion of one of its rows is then
recorded, whichever door it came through: an admin form, a page of the console, a command. What is
changed past the models (``QuerySet.update``, plain SQL) is not seen, and nothing here does that to
a watched column. A module that changes something else of weight calls ``record``.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import models
from django.db.models.signals import post_save, pre_delete, pre_save
from django.http import HttpRequest, HttpResponseBase

from accounts.models import AuditEntry, Organization, User
from accounts.security_rows import Source
from svc_project.lib.client_address import client_address
from svc_project.lib.clock import iso_milliseconds

Facts = Mapping[str, Any]
Verb = Callable[[Facts, Facts], str | None]
"""Names a change by its values before and after; ``None`` leaves it a plain "changed"."""

NOT_SHOWN = "not shown"
"""Stands for both values of a secret that was changed."""

_BEFORE = "_audit_before"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who acts, through which door, from which address."""

    actor: str
    source: Source
    address: str | None = None


_origin: ContextVar[Callable[[], Origin] | None] = ContextVar("audit_origin", default=None)
_named: ContextVar[tuple[str, Mapping[str, Any]] | None] = ContextVar("audit_verb", default=None)


class AuditMiddleware:
    """Says on whose behalf a request acts; stands behind the middleware that finds its user."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with acting(lambda: _origin_of(request)):
            return self.get_response(request)


@contextmanager
def acting(origin: Callable[[], Origin]) -> Iterator[None]:
    """What is recorded inside is put down to ``origin``, which is asked only then."""
    token = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(token)


@contextmanager
def named(verb: str, **facts: str) -> Iterator[None]:
    """What is recorded inside is called ``verb``, and ``facts`` are told with it.

    For changes whose values do not tell what they are.
    """
    token = _named.set((verb, {name: (None, fact) for name, fact in facts.items()}))
    try:
        yield
    finally:
        _named.reset(token)


def record(
    verb: str,
    subject: models.Model,
    changes: Mapping[str, tuple[Any, Any]],
    *,
    origin: Origin | None = None,
) -> None:
    """Write one entry now, in the current transaction.

    ``changes`` maps fields to values before and after, fit for JSON. ``origin``: for code that no
    request or command runs; else it is known.
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

    ``ignored``: fields that are nobody's decision. ``hidden``: fields whose values are secret; that
    they changed is recorded, what they are is not.
    """
    columns = [
        field
        for field in model._meta.concrete_fields
        if field.name not in ignored and not field.primary_key
    ]
    names = {field.name for field in columns} | {field.attname for field in columns}

    def facts(row: models.Model) -> dict[str, Any]:
        return {field.name: _fact(row, field) for field in columns}

    def before(instance: models.Model, update_fields: Any, raw: bool, **_: Any) -> None:
        instance.__dict__.pop(_BEFORE, None)
        if raw or instance._state.adding or not _touches(update_fields, names):
            return
        stored = model._base_manager.filter(pk=instance.pk).first()
        instance.__dict__[_BEFORE] = facts(stored) if stored is not None else {}

    def after(instance: models.Model, created: bool, raw: bool, **_: Any) -> None:
        was = instance.__dict__.pop(_BEFORE, {} if created else None)
        if raw or was is None:
            return
        # Read again: an unsaved value may be of another type than what the database made of it.
        stored = model._base_manager.get(pk=instance.pk)
        changes = _differences(was, facts(stored), hidden)
        if changes or created:
            plain = "created" if created else "changed"
            told = verb(was, facts(stored)) if verb is not None else None
            name, more = _named.get() or (told or plain, {})
            record(name, stored, {**changes, **more})

    def gone(instance: models.Model, **_: Any) -> None:
        record("deleted", instance, _differences(facts(instance), {}, hidden))

    for signal, receiver in ((pre_save, before), (post_save, after), (pre_delete, gone)):
        signal.connect(receiver, sender=model, weak=False, dispatch_uid=f"audit {model._meta}")


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
    """The value of ``field`` as JSON has it; of a reference, what it is called and its id."""
    value = getattr(row, field.attname)
    if field.is_relation and value is not None:
        return f"{getattr(row, field.name)} ({value})"
    if value is None or isinstance(value, (bool, int, float, str, list, dict)):
        return value
    return iso_milliseconds(value) if isinstance(value, datetime) else str(value)


def _organization_of(subject: models.Model) -> uuid.UUID | None:
    if isinstance(subject, Organization):
        return subject.pk
    found = getattr(subject, "organization_id", None)
    return found if isinstance(found, uuid.UUID) else None


def _origin_of(request: HttpRequest) -> Origin:
    doors = (("/admin/", Source.ADMIN), ("/console/", Source.CONSOLE))
    source = next((door for path, door in doors if request.path.startswith(path)), Source.API)
    actor = request.user.email if isinstance(request.user, User) else "nobody"
    return Origin(actor, source, client_address(request))


def _outside() -> Origin:
    """Outside of a request it is the command that this process runs, if it runs one."""
    if Path(sys.argv[0]).name in ("manage.py", "django-admin") and len(sys.argv) > 1:
        return Origin(f"command:{sys.argv[1]}"[:300], Source.COMMAND)
    return Origin("system", Source.SYSTEM)
