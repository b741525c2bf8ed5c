"""Registers this app with Django; every change of the catalog updates its change stamp."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_delete, post_save

CATALOG_TABLES = ("WeightsRecord", "ModelEntry", "Price", "Backend", "Deployment", "ModelLimit")


class InferenceConfig(AppConfig):
    name = "inference"
    verbose_name = "Inference"

    def ready(self) -> None:
        for name in CATALOG_TABLES:
            for signal in (post_save, post_delete):
                signal.connect(
                    _catalog_changed, sender=self.get_model(name), dispatch_uid="catalog_changed"
                )
        from inference.models import audited

        audited.watch()
        from accounts.console.first_request import examples
        from accounts.models import Scope
        from inference.catalog.first_model import first_model

        examples[Scope.INFERENCE] = first_model


def _catalog_changed(**_: Any) -> None:
    from accounts.changes import CATALOG, changed

    changed(CATALOG)
