"""Registers this app with Django."""

from __future__ import annotations

from django.apps import AppConfig


class SpeechConfig(AppConfig):
    name = "speech"
    verbose_name = "Speech"

    def ready(self) -> None:
        from speech.models import audited

        audited.watch()
        from accounts.console.first_request import examples
        from accounts.models import Scope
        from speech.voices.voices import first_voice

        examples[Scope.SPEECH] = first_voice
