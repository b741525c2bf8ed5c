"""Seeds an empty installation for `make run`: a demo catalog, an organization and its keys."""

from __future__ import annotations

import secrets
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from accounts.keys.keys import mint
from accounts.models import ApiKey, Membership, Organization, Plan, Role, Scope, User
from inference.models import ModelEntry
from svc_project.configuration.documents import load_catalog_file, load_catalog_values

ORGANIZATION = "demo"
EMAIL = "demo@svc.example"
LABEL = "demo"
CATALOG = settings.BASE_DIR / "deploy" / "demo_catalog.toml"
NEURAL_CATALOG = settings.BASE_DIR / "deploy" / "neural_catalog.toml"
SIMULATOR_ADDRESS = "http://127.0.0.1:9000/v1"


@dataclass
class Seeded:
    """The results of one run of ``seed``; secrets of earlier runs are not known."""

    changes: list[str] = field(default_factory=list)
    keys: dict[Scope, str] = field(default_factory=dict)
    password: str | None = None


def seed(simulator_address: str) -> Seeded:
    """Make the missing ones of: organization, user, one key of each scope, models. Load backend and voices.

    ``simulator_address`` is the model simulator's. Raises ``CatalogFileError`` when the demo
    catalog cannot be loaded into the existing one.
    """
    seeded = Seeded()
    with transaction.atomic():
        organization, made = Organization.objects.get_or_create(
            name=ORGANIZATION, defaults={"plan": Plan.ENTERPRISE}
        )
        if made:
            seeded.changes.append(f"created organization {ORGANIZATION}")
        if not User.objects.filter(email=EMAIL).exists():
            seeded.password = secrets.token_urlsafe(12)
            user = User.objects.create_superuser(EMAIL, seeded.password)
            Membership.objects.create(user=user, organization=organization, role=Role.OWNER)
        for scope in _missing_scopes(organization):
            seeded.keys[scope] = mint(organization, scope, LABEL).secret
        seeded.changes += load_catalog_values(_catalog(simulator_address), only_plan=False)
    return seeded


def add_neural_voices() -> list[str]:
    """Add the neural engine's voices. Raises ``CatalogFileError`` when it is not installed."""
    return load_catalog_file(Path(NEURAL_CATALOG).read_bytes())


def _missing_scopes(organization: Organization) -> Iterator[Scope]:
    keys = ApiKey.objects.filter(organization=organization, label=LABEL, revoked_at=None)
    there = set(keys.values_list("scope", flat=True))
    yield from (scope for scope in Scope if scope.value not in there)


def _catalog(simulator_address: str) -> dict[str, Any]:
    """The demo catalog without the models that are there: an operator may have changed them since."""
    content = CATALOG.read_text(encoding="utf-8")
    found = tomllib.loads(content.replace(SIMULATOR_ADDRESS, simulator_address))
    there = set(ModelEntry.objects.values_list("identifier", flat=True))
    return {**found, "models": [model for model in found["models"] if model["id"] not in there]}
