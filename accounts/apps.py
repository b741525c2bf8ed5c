"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        from accounts.audit import watched
        from accounts.keys import signals  # noqa: F401  # importing connects the receivers

        watched.watch()
