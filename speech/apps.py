"""Django's registration of this app."""

from __future__ import annotations

from django.apps import AppConfig


class SpeechConfig(AppConfig):
    name = "speech"
    verbose_name = "Speech"
