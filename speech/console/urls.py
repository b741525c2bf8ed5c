"""Routes of the console's pages about voices, below /console/."""

from __future__ import annotations

from django.urls import path

from speech.console import views

urlpatterns = [
    path("voices", views.VoicesPage.as_view(), name="console-voices"),
    path("voices/check", views.CheckView.as_view(), name="console-voices-check"),
    path(
        "voices/receipts/<str:request_id>",
        views.ReceiptView.as_view(),
        name="console-voices-receipt",
    ),
    path(
        "voices/<str:voice>/delete",
        views.DeleteCloneView.as_view(),
        name="console-clone-delete",
    ),
]
