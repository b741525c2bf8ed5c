"""Routes of the console's pages about voices, below /console/."""

from __future__ import annotations

from django.urls import path

from speech.console import pronunciations, views

urlpatterns = [
    path("voices", views.VoicesPage.as_view(), name="console-voices"),
    path("voices/check", views.CheckView.as_view(), name="console-voices-check"),
    path(
        "voices/receipts/<str:request_id>",
        views.ReceiptView.as_view(),
        name="console-voices-receipt",
    ),
    path(
        "voices/pronunciations",
        pronunciations.PronunciationsPage.as_view(),
        name="console-pronunciations",
    ),
    path(
        "voices/pronunciations/<str:pronunciation>/delete",
        pronunciations.DeletePronunciationView.as_view(),
        name="console-pronunciation-delete",
    ),
    path(
        "voices/<str:voice>/delete",
        views.DeleteCloneView.as_view(),
        name="console-clone-delete",
    ),
]
