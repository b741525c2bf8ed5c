"""/manage/v1/organizations: organizations and their limits."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import facts, organizations
from accounts.api.management import (
    OF_A_PAGE,
    Fields,
    LimitField,
    ManagementView,
    page,
    require_parameters,
)
from accounts.models import Organization, Plan, PriorityClass
from core.errors import InvalidField, NotFound


class OrganizationFields(Fields):
    plan = serializers.ChoiceField(Plan.choices, required=False)
    priority = serializers.ChoiceField(PriorityClass.choices, required=False)
    diagnostic_captures = serializers.BooleanField(source="captures_allowed", required=False)
    requests_per_minute = LimitField(required=False)
    tokens_per_minute = LimitField(required=False)
    speech_requests_per_minute = LimitField(required=False)
    speech_characters_per_day = LimitField(required=False)
    disabled = serializers.BooleanField(required=False)


class OrganizationsView(ManagementView):
    def get(self, request: Request) -> Response:
        require_parameters(request, *OF_A_PAGE)
        rows, cursor = page(request, Organization.objects.all())
        return Response({"data": list(facts.organizations(rows)), "next_cursor": cursor})


class OrganizationView(ManagementView):
    """One organization, by its name or its id."""

    def get(self, request: Request, organization: str) -> Response:
        return Response(facts.organization(find_organization(organization)))

    def put(self, request: Request, organization: str) -> Response:
        """Make the organization of that name, or change what is sent of it."""
        fields = OrganizationFields.of(request)
        try:
            return _change(find_organization(organization), fields)
        except NotFound:
            if _id_of(organization) is not None:
                raise
        return _change(organization, fields)

    def patch(self, request: Request, organization: str) -> Response:
        """Change what is sent."""
        return _change(find_organization(organization), OrganizationFields.of(request))

    def delete(self, request: Request, organization: str) -> Response:
        """Disable it: usage refers to it, so it stays."""
        return _change(find_organization(organization), {"disabled": True})


def find_organization(name_or_id: str) -> Organization:
    """The organization of that name, or else of that id.

    Raises ``NotFound``, and ``InvalidField`` for what PostgreSQL cannot compare.
    """
    if "\0" in name_or_id:
        raise InvalidField("'organization': It holds a null character.", param="organization")
    found = Organization.objects.filter(name=name_or_id).first()
    if found is None and (number := _id_of(name_or_id)) is not None:
        found = Organization.objects.filter(pk=number).first()
    if found is None:
        raise NotFound("There is no organization of this name or id.", param="organization")
    return found


def _id_of(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def _change(named: str | Organization, fields: dict[str, Any]) -> Response:
    disabled = fields.pop("disabled", None)
    with transaction.atomic():
        organization, made = organizations.change(named, fields)
        if disabled is not None:
            chosen = Organization.objects.filter(pk=organization.pk)
            organizations.set_disabled(chosen, disabled=disabled)
    return Response(facts.organization(organization), status=201 if made else 200)
