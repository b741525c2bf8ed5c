"""The voice that the console names to an organization for its first request."""

from __future__ import annotations

from accounts.models import Organization
from speech.voices.voices import voices


def first_voice(organization: Organization) -> str | None:
    """Return the first global voice that the organization's plan has; None when there is none."""
    found = voices.current().voices
    return next(
        (name for name in sorted(found) if found[name].is_visible_to(organization.plan)), None
    )
