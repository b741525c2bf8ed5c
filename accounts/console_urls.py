"""The console's pages that are about people and keys, below /console/."""

from __future__ import annotations

from django.urls import path

from accounts import console, console_keys

urlpatterns = [
    path("login", console.LoginView.as_view(), name="console-login"),
    path("logout", console.LogoutView.as_view(), name="console-logout"),
    path("organization", console.OrganizationView.as_view(), name="console-organization"),
    path("keys", console_keys.KeysView.as_view(), name="console-keys"),
    path("keys/new", console_keys.NewKeyView.as_view(), name="console-key-new"),
    path(
        "keys/<uuid:key_id>/rotate",
        console_keys.RotateKeyView.as_view(),
        name="console-key-rotate",
    ),
    path(
        "keys/<uuid:key_id>/revoke",
        console_keys.RevokeKeyView.as_view(),
        name="console-key-revoke",
    ),
    path("<path:path>", console.NothingHere.as_view()),
]
