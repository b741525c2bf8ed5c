"""Routes of the speech surface that are views; the consumers' are in ``svc_project.asgi``."""

from __future__ import annotations

from django.urls import path

from speech.voices.pronunciations.views import PronunciationsView, PronunciationView
from speech.voices.views import (
    NamedModelsView,
    NamedVoicesView,
    VoiceEntryView,
    VoiceListView,
    VoiceView,
)

urlpatterns = [
    path("v1/models", VoiceListView.as_view(), name="voices"),
    path("v1/models/<path:voice>", VoiceEntryView.as_view(), name="voice-entry"),
    path("v1/audio/models", NamedModelsView.as_view(), name="named-models"),
    path("v1/audio/voices", NamedVoicesView.as_view(), name="named-voices"),
    path("v1/pronunciations", PronunciationsView.as_view(), name="pronunciations"),
    path(
        "v1/pronunciations/<path:pronunciation_id>",
        PronunciationView.as_view(),
        name="pronunciation",
    ),
    path("v1/voices/<path:voice>", VoiceView.as_view(), name="voice"),
]

handler400 = "speech.voices.views.bad_request"
handler404 = "speech.voices.views.not_found"
handler500 = "speech.voices.views.server_error"
