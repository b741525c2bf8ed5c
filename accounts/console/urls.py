"""Routes of the console's pages for people, below /console/, and of keys, below an organization."""

from __future__ import annotations

from django.urls import path
from django.views.generic import TemplateView

from accounts.console import account, base, keys, organization

PEOPLE = [
    path("login", base.LoginView.as_view(), name="console-login"),
    path("logout", base.LogoutView.as_view(), name="console-logout"),
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
]

urlpatterns = [
    path("organization", organization.OrganizationView.as_view(), name="console-organization"),
    path(
        "organization/members/<int:member>",
        organization.MemberView.as_view(),
        name="console-member",
    ),
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
    # Last: it answers every other path.
    path("<path:path>", base.NothingHere.as_view()),
]
