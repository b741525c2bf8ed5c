"""The names that people read for the groups of sums."""

from __future__ import annotations

import uuid

from django.urls import reverse

from accounts.models import ApiKey, Organization
from svc_project.lib.ids import NIL_UUID
from usage.queries.overviews.everyone import By, Entry


class Names:
    """Names and admin pages of the organizations and keys in ``entries``."""

    def __init__(self, by: tuple[By, ...], entries: list[Entry]) -> None:
        ids = {each: {entry.key[at] for entry in entries} for at, each in enumerate(by)}
        self._organizations = dict(
            Organization.objects.filter(pk__in=ids.get(By.ORGANIZATION, ())).values_list(
                "pk", "name"
            )
        )
        self._keys = {
            pk: f"{prefix}… {label}".strip()
            for pk, prefix, label in ApiKey.objects.filter(
                pk__in=ids.get(By.API_KEY, ())
            ).values_list("pk", "prefix", "label")
        }

    def of(self, by: By, value: str) -> tuple[str, str]:
        """Return the name of ``value``, and the address of its admin page or an empty text."""
        if by is By.ORGANIZATION:
            return self._named(self._organizations, value, "admin:accounts_organization_change")
        if by is By.API_KEY:
            if value == str(NIL_UUID):
                return "without a key", ""
            return self._named(self._keys, value, "admin:accounts_apikey_change")
        return value, ""

    @staticmethod
    def _named(names: dict[uuid.UUID, str], value: str, page_name: str) -> tuple[str, str]:
        name = names.get(uuid.UUID(value))
        if name is None:
            return f"{value} (no longer here)", ""
        return name, reverse(page_name, args=[value])
