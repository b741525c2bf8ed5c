"""Django's registration of this app, and the stamp that every change of the voices moves."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_delete, post_save

VOICE_TABLES = ("Voice", "SpeechBackend")


class SpeechConfig(AppConfig):
    name = "speech"
    verbose_name = "Speech"

    def ready(self) -> None:
        for name in VOICE_TABLES:
            for signal in (post_save, post_delete):
                signal.connect(
                    _voices_changed, sender=self.get_model(name), dispatch_uid="voices_changed"
                )
        from speech import audited

        audited.watch()


def _voices_changed(**_: Any) -> None:
    from accounts.changes import VOICES, changed

    changed(VOICES)
