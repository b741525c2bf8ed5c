"""Registers this app with Django."""

from __future__ import annotations

from django.apps import AppConfig


class InferenceConfig(AppConfig):
    name = "inference"
    verbose_name = "Inference"

    def ready(self) -> None:
        from inference.models import audited

        audited.watch()
        from accounts.console.first_request import examples
        from accounts.models import Scope
        from inference.catalog.catalog import example_model
        from inference.catalog.pricing import price_history
        from usage.verification.rows import price_histories

        examples[Scope.INFERENCE] = example_model
        price_histories.append(price_history)
