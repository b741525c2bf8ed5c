"""Routes of the console's pages that know the catalog, below /console/."""

from __future__ import annotations

from django.urls import path

from inference.console import keys, models, overview, playground, request

urlpatterns = [
    path("requests/<str:request_id>", request.RequestPage.as_view(), name="console-request"),
    path("", overview.OverviewPage.as_view(), name="console"),
    path("models", models.ModelsPage.as_view(), name="console-models"),
    path("models/<path:identifier>", models.ModelPage.as_view(), name="console-model"),
    path("keys", keys.KeysPage.as_view(), name="console-keys"),
    path("keys/<uuid:key_id>", keys.KeyPage.as_view(), name="console-key"),
    path("playground", playground.PlaygroundPage.as_view(), name="console-playground"),
    path("playground/check", playground.CheckView.as_view(), name="console-playground-check"),
    path(
        "playground/receipts/<str:request_id>",
        playground.ReceiptView.as_view(),
        name="console-receipt",
    ),
]
