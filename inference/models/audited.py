"""Registers the catalog's tables with the audit log, and names their changes."""

from __future__ import annotations

from accounts.audit import trail
from accounts.audit.trail import Facts
from inference.models import (
    Backend,
    Deployment,
    ModelEntry,
    ModelLimit,
    Price,
    PriceWithdrawal,
    WeightsRecord,
)


def watch() -> None:
    """Register the tables; called once, when the app is ready."""
    made = frozenset({"created_at"})
    trail.watch(ModelEntry, ignored=made, verb=_entry)
    trail.watch(WeightsRecord, ignored=made)
    trail.watch(Price, ignored=made, verb=lambda was, now: None if was else "appended")
    trail.watch(PriceWithdrawal, ignored=made, verb=lambda was, now: None if was else "appended")
    trail.watch(Backend)
    trail.watch(Deployment)
    trail.watch(ModelLimit)


def _entry(was: Facts, now: Facts) -> str | None:
    """Name the transition of the lifecycle (``inference.catalog.lifecycle``), if it was one."""
    if not was:
        return None
    if now["published_at"] and not was["published_at"]:
        return "published"
    if was["superseded_at"] and not now["superseded_at"]:
        return "made active again"
    if was["superseded_by"] != now["superseded_by"]:
        return "superseded"
    if was["shutdown_at"] != now["shutdown_at"]:
        return "given another shutdown date"
    return None
