"""Django's registration of this app, and the stamp that every change of the catalog moves."""

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
        from inference import audited

        audited.watch()


def _catalog_changed(**_: Any) -> None:
    from accounts.changes import CATALOG, changed

    changed(CATALOG)
