"""The model that the console names to an organization for its first request."""

from __future__ import annotations

import time

from accounts.models import Organization
from inference.catalog.catalog import catalog


def first_model(organization: Organization) -> str | None:
    """Return the first active model that a backend serves; None when there is none."""
    now = time.time()
    models = catalog.current().models
    return next(
        (
            model.id
            for _, model in sorted(models.items())
            if model.deployments and model.superseded_by is None and not model.is_retired(now)
        ),
        None,
    )
