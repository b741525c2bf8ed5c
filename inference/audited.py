"""Which rows of the catalog the audit log watches, and what their changes are called."""

from __future__ import annotations

from accounts import audit
from accounts.audit import Facts
from inference.models import Backend, Deployment, ModelEntry, ModelLimit, Price, WeightsRecord


def watch() -> None:
    """Called once, when the app is ready."""
    made = frozenset({"created_at"})
    audit.watch(ModelEntry, ignored=made, verb=_entry)
    audit.watch(WeightsRecord, ignored=made)
    audit.watch(Price, ignored=made, verb=lambda was, now: None if was else "appended")
    audit.watch(Backend)
    audit.watch(Deployment)
    audit.watch(ModelLimit)


def _entry(was: Facts, now: Facts) -> str | None:
    """The move of the lifecycle (``inference.lifecycle``), if it was one."""
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
