"""Routes of the management API, below /manage/v1/."""

from __future__ import annotations

from django.urls import path

from accounts.api.keys import KeysView, KeyView, RotationView
from accounts.api.organizations import OrganizationsView, OrganizationView
from accounts.api.users import UserLinkView, UsersView, UserView

urlpatterns = [
    path("organizations", OrganizationsView.as_view(), name="manage_organizations"),
    path(
        "organizations/<path:organization>", OrganizationView.as_view(), name="manage_organization"
    ),
    path("users", UsersView.as_view(), name="manage_users"),
    path("users/<str:user>", UserView.as_view(), name="manage_user"),
    path("users/<str:user>/link", UserLinkView.as_view(), name="manage_user_link"),
    path("keys", KeysView.as_view(), name="manage_keys"),
    path("keys/<uuid:api_key_id>", KeyView.as_view(), name="manage_key"),
    path("keys/<uuid:api_key_id>/rotate", RotationView.as_view(), name="manage_key_rotation"),
]
