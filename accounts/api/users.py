"""/manage/v1/users: users of the console. Operators are shown, and changed elsewhere."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
from django.db import transaction
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import facts, users
from accounts.api.management import (
    OF_A_PAGE,
    Fields,
    ManagementView,
    page,
    require_parameters,
)
from accounts.api.organizations import find_organization
from accounts.login import password_links
from accounts.models import Organization, User
from core.clock import iso_milliseconds
from core.errors import InvalidField, NotFound


class UserFields(Fields):
    organizations = serializers.ListField(
        child=serializers.CharField(trim_whitespace=False), required=False, max_length=100
    )
    owner_of = serializers.ListField(
        child=serializers.CharField(trim_whitespace=False), required=False, max_length=100
    )
    active = serializers.BooleanField(required=False)


class UserLink(msgspec.Struct):
    """A one-time link with which the user sets a password, shown once."""

    link: str
    until: str


class UsersView(ManagementView):
    def get(self, request: Request) -> Response:
        """The users of all organizations, or of one."""
        require_parameters(request, "organization", *OF_A_PAGE)
        rows = User.objects.all()
        if (named := request.query_params.get("organization")) is not None:
            rows = rows.filter(organizations=find_organization(named))
        shown, cursor = page(request, rows)
        return Response({"data": list(facts.users(shown)), "next_cursor": cursor})


class UserView(ManagementView):
    """One user, by the email address or the id."""

    def get(self, request: Request, user: str) -> Response:
        return Response(_shown(find_user(user)))

    def put(self, request: Request, user: str) -> Response:
        """Make the user of that address, or change what is sent."""
        chosen = _chosen(request)
        try:
            return _change(find_user(user), chosen)
        except NotFound:
            if _id_of(user) is not None:
                raise
            if not chosen.get("organizations"):
                raise InvalidField(
                    "'organizations' must name one at least: a new user needs one.",
                    param="organizations",
                ) from None
        return _change(user, chosen)

    def patch(self, request: Request, user: str) -> Response:
        """Change what is sent."""
        return _change(find_user(user), _chosen(request))

    def delete(self, request: Request, user: str) -> Response:
        """Disable the user: the audit log names users, so the row stays."""
        return _change(find_user(user), {"active": False})


class UserLinkView(ManagementView):
    def post(self, request: Request, user: str) -> Response:
        """Make a one-time link, with which the user sets a password."""
        Fields.of(request)
        with transaction.atomic():
            row = User.objects.select_for_update().get(pk=find_user(user).pk)
            users.require_no_operator(row)
            if not row.is_active:
                raise InvalidField(f"'user': {row.email} is disabled.", param="user")
            link, until = password_links.give(row, request._request)
        made = UserLink(link=link, until=iso_milliseconds(until))
        return Response(made, status=201)


def find_user(email_or_id: str) -> User:
    """The user with that address, or else of that id.

    Raises ``NotFound``, and ``InvalidField`` for what PostgreSQL cannot compare.
    """
    if "\0" in email_or_id:
        raise InvalidField("'user': It holds a null character.", param="user")
    number = _id_of(email_or_id)
    among = User.objects.filter(email=email_or_id.strip().lower())
    found = (among if number is None else User.objects.filter(pk=number)).first()
    if found is None:
        raise NotFound("There is no user of this address or id.", param="user")
    return found


def _id_of(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def _chosen(request: Request) -> users.Chosen:
    fields = UserFields.of(request)
    chosen: users.Chosen = {}
    if "active" in fields:
        chosen["active"] = fields["active"]
    if "organizations" in fields:
        chosen["organizations"] = _named(fields["organizations"], "organizations")
    if "owner_of" in fields:
        chosen["owner_of"] = _named(fields["owner_of"], "owner_of")
    return chosen


def _named(names: list[str], field: str) -> list[Organization]:
    """The organizations of those names. Raises ``InvalidField`` for ``field``."""
    found = []
    for name in names:
        try:
            found.append(find_organization(name))
        except NotFound:
            message = f"'{field}': there is no organization {name!r}."
            raise InvalidField(message[:200], param=field) from None
    return found


def _change(named: str | User, chosen: users.Chosen) -> Response:
    user, made = users.change(named, spare_operators=True, **chosen)
    return Response(_shown(user), status=201 if made else 200)


def _shown(user: User) -> Any:
    return next(facts.users(User.objects.filter(pk=user.pk)))
