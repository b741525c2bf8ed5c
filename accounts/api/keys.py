"""/manage/v1/keys: API keys of every organization. A secret is in the answer that made it alone."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Final

import msgspec
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import facts
from accounts.api.management import (
    OF_A_PAGE,
    Fields,
    LimitField,
    ManagementView,
    MomentField,
    page,
    require_parameters,
)
from accounts.api.organizations import find_organization
from accounts.keys import keys
from accounts.keys.keys import KeyLimits, NotRotatable
from accounts.models import ApiKey, PriorityClass, Scope
from core import clock
from core.errors import InvalidField, InvalidQuery, NotFound

_DAY: Final = 86_400
_LONGEST_OVERLAP: Final = 7 * _DAY
ENDED: Final = {"working": False, "ended": True}


class ShownKey(facts.KeyFacts):
    """A key; ``key`` is its secret in the answer that made it, and null in every other."""

    key: str | None


class KeyFields(Fields):
    organization = serializers.CharField(trim_whitespace=False)
    scope = serializers.ChoiceField(Scope.choices)
    label = serializers.CharField(max_length=80, trim_whitespace=False)  # type: ignore[assignment]  # its name on the wire
    requests_per_minute = LimitField(none=None, required=False)
    tokens_per_minute = LimitField(none=None, required=False)
    priority = serializers.ChoiceField(PriorityClass.choices, required=False, allow_null=True)
    expires_at = MomentField(required=False, allow_null=True)


class KeyChanges(Fields):
    label = serializers.CharField(max_length=80, required=False, trim_whitespace=False)  # type: ignore[assignment]  # as above
    requests_per_minute = LimitField(none=None, required=False)
    tokens_per_minute = LimitField(none=None, required=False)
    priority = serializers.ChoiceField(PriorityClass.choices, required=False, allow_null=True)
    expires_at = MomentField(required=False, allow_null=True)


class RotationFields(Fields):
    overlap_seconds = serializers.IntegerField(
        min_value=0, max_value=_LONGEST_OVERLAP, default=_DAY
    )


class KeysView(ManagementView):
    def get(self, request: Request) -> Response:
        """The keys of an organization that work, or those that have ended."""
        require_parameters(request, "organization", "status", *OF_A_PAGE)
        status = request.query_params.get("status", "working")
        if status not in ENDED:
            raise InvalidQuery("'status' must be 'working' or 'ended'.", param="status")
        named = request.query_params.get("organization")
        if named is None:
            raise InvalidQuery("'organization' must name one.", param="organization")
        rows = keys.of_organization(find_organization(named), live=not ENDED[status])
        shown, cursor = page(request, rows)
        return Response({"data": list(facts.api_keys(shown)), "next_cursor": cursor})

    def post(self, request: Request) -> Response:
        """Make a key, unless one of this organization, scope and label works."""
        fields = KeyFields.of(request)
        own = {name: fields[name] for name in KeyLimits.__dataclass_fields__ if name in fields}
        api_key, secret = keys.ensure(
            find_organization(fields["organization"]),
            Scope(fields["scope"]),
            fields["label"],
            limits=KeyLimits(**own),
            expires_at=fields.get("expires_at"),
        )
        return Response(_shown(api_key, secret), status=200 if secret is None else 201)


class KeyView(ManagementView):
    def get(self, request: Request, api_key_id: uuid.UUID) -> Response:
        return Response(_shown(_find(api_key_id)))

    def patch(self, request: Request, api_key_id: uuid.UUID) -> Response:
        """Change label, limits, class or end."""
        api_key = _find(api_key_id)
        keys.change(api_key, KeyChanges.of(request))
        return Response(_shown(api_key))

    def delete(self, request: Request, api_key_id: uuid.UUID) -> Response:
        """Revoke it: usage refers to it, so its row stays."""
        api_key = _find(api_key_id)
        keys.revoke(api_key)
        return Response(_shown(api_key))


class RotationView(ManagementView):
    def post(self, request: Request, api_key_id: uuid.UUID) -> Response:
        """Make its successor; the key works on for ``overlap_seconds``."""
        overlap = RotationFields.of(request)["overlap_seconds"]
        try:
            new = keys.rotate(_find(api_key_id), clock.now() + timedelta(seconds=overlap))
        except NotRotatable as error:
            raise InvalidField(str(error)) from None
        return Response(_shown(new.api_key, new.secret), status=201)


def _find(api_key_id: uuid.UUID) -> ApiKey:
    found = ApiKey.objects.filter(pk=api_key_id).first()
    if found is None:
        raise NotFound("There is no API key of this id.", param="api_key_id")
    return found


def _shown(api_key: ApiKey, secret: str | None = None) -> ShownKey:
    found = next(facts.api_keys(ApiKey.objects.filter(pk=api_key.pk)))
    return ShownKey(**msgspec.structs.asdict(found), key=secret)
