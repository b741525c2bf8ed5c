"""The models of this app that the audit log watches, and the names of their changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group
from django.db import models
from django.db.models.signals import m2m_changed

from accounts.audit import trail
from accounts.audit.trail import Facts
from accounts.models import ApiKey, Membership, Organization, User


def watch() -> None:
    """Register the models; called once, when the app is ready."""
    trail.watch(Organization, ignored=frozenset({"created_at"}), verb=_organization)
    trail.watch(
        User,
        ignored=frozenset({"created_at", "last_login"}),
        hidden=frozenset({"password"}),
        verb=_user,
    )
    trail.watch(Membership, ignored=frozenset({"created_at"}))
    trail.watch(
        ApiKey, ignored=frozenset({"created_at", "last_used_at", "digest", "pepper"}), verb=_key
    )
    trail.watch(Group)
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
            trail.record("permissions changed", instance, {name: (was, now)})

    m2m_changed.connect(changed, sender=through, weak=False, dispatch_uid=f"audit {name}")


def _names(model: type[models.Model], keys: Iterable[Any]) -> list[str]:
    return [str(each) for each in model._default_manager.filter(pk__in=keys)]
