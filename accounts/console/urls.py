"""Routes of the console's pages for people and keys, below /console/."""

from __future__ import annotations

from django.urls import path
from django.views.generic import TemplateView

from accounts.console import account, base, keys

urlpatterns = [
    path("login", base.LoginView.as_view(), name="console-login"),
    path("logout", base.LogoutView.as_view(), name="console-logout"),
    path("organization", base.OrganizationView.as_view(), name="console-organization"),
    path("password", account.PasswordView.as_view(), name="console-password"),
    path(
        "password/forgotten",
        account.ForgottenPasswordView.as_view(),
        name="console-password-forgotten",
    ),
    path(
        "password/set/<str:uidb64>/<str:token>",
        account.SetPasswordView.as_view(),
        name="console-password-set",
    ),
    path(
        "password/was-set",
        TemplateView.as_view(template_name="console/password_was_set.html"),
        name="console-password-was-set",
    ),
    path("profile", account.ProfileView.as_view(), name="console-profile"),
    path("keys/new", keys.NewKeyView.as_view(), name="console-key-new"),
    path(
        "keys/<uuid:key_id>/rotate",
        keys.RotateKeyView.as_view(),
        name="console-key-rotate",
    ),
    path(
        "keys/<uuid:key_id>/revoke",
        keys.RevokeKeyView.as_view(),
        name="console-key-revoke",
    ),
    path("<path:path>", base.NothingHere.as_view()),
]
