"""Registers this app with Django; every change of the voices moves their stamp."""

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
        from speech.models import audited

        audited.watch()
        from accounts.console.first_request import examples
        from accounts.models import Scope
        from speech.voices.first_voice import first_voice

        examples[Scope.SPEECH] = first_voice


def _voices_changed(**_: Any) -> None:
    from accounts.changes import VOICES, changed

    changed(VOICES)
