"""The base of the views of the management API: who calls, what a body is, how a list is cut in pages."""

from __future__ import annotations

import base64
import binascii
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final

import msgspec
from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.audit import trail
from accounts.keys import admin_keys
from accounts.login import throttle
from core.api.views import ApiView
from core.errors import (
    BadRequest,
    InvalidCredential,
    InvalidCursor,
    InvalidField,
    InvalidQuery,
    RateLimitExceeded,
)

DEFAULT_LIMIT: Final = 100
HIGHEST_LIMIT: Final = 500
_HIGHEST_NUMBER: Final = 10**15
_LONGEST_PLACE: Final = 200
"""Characters of the place in a body that an error names."""
_CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
OF_A_PAGE: Final = ("limit", "cursor")
"""The parameters of ``page``."""


class JsonObject(BaseParser):
    """Reads a body, whatever its Content-Type, as one JSON object."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        body = stream.read() or b"{}"
        try:
            found = msgspec.json.decode(body)
            repeated = _first_repeated(body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise InvalidField("The body is not valid JSON.") from None
        if not isinstance(found, dict):
            raise InvalidField("The body must be a JSON object.")
        if repeated is not None:
            place = repeated[:_LONGEST_PLACE]
            raise InvalidField(f"'{place}' is there twice.", param=place)
        return found


class _Repeating(dict[str, Any]):
    """A JSON object that has the member ``name`` more than once."""

    def __init__(self, members: list[tuple[str, Any]], name: str) -> None:
        super().__init__(members)
        self.name = name


def _object_of(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) == len(members):
        return found
    counts = Counter(name for name, _ in members)
    return _Repeating(members, next(name for name, count in counts.items() if count > 1))


def _first_repeated(body: bytes) -> str | None:
    """The place of a member that an object of the valid JSON ``body`` has twice, or None.

    Readers of JSON disagree about which of the two counts (RFC 8259, section 4), and one of them is a
    mistake.
    """
    read = json.loads(body, object_pairs_hook=_object_of, parse_int=str, parse_float=str)
    # One place at a time is in memory: all of them together are as large as the square of the body.
    inside = [iter([("", read)])]
    while inside:
        where, each = next(inside[-1], (None, None))
        if where is None:
            inside.pop()
        elif isinstance(each, _Repeating):
            return f"{where}.{each.name}".lstrip(".")
        else:
            inside.append(_containers(where, each))
    return None


def _containers(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The objects and arrays in the object or array ``value``, with their places."""
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, dict | list):
                yield f"{where}.{name[:_LONGEST_PLACE]}".lstrip(".")[:_LONGEST_PLACE], each
    elif isinstance(value, list):
        for index, each in enumerate(value):
            if isinstance(each, dict | list):
                yield f"{where}[{index}]"[:_LONGEST_PLACE], each


_JSON_TYPES: Final[Mapping[type[serializers.Field[Any, Any, Any, Any]], tuple[type, str]]] = {
    serializers.BooleanField: (bool, "true or false"),
    serializers.IntegerField: (int, "a whole number"),
    serializers.ListField: (list, "an array"),
    serializers.ChoiceField: (str, "text"),
    serializers.CharField: (str, "text"),
    serializers.DateTimeField: (str, "text"),
}
"""What each kind of field takes, in words: DRF takes ``"yes"`` and ``1`` for true, and 5 for text."""


class MomentField(serializers.DateTimeField):
    """A moment with its time zone (RFC 3339): without one it would be read as UTC."""

    def enforce_timezone(self, value: datetime) -> datetime:
        if timezone.is_naive(value):
            raise serializers.ValidationError("Give a time zone too, as in 2027-01-31T00:00:00Z.")
        return super().enforce_timezone(value)


class Fields(serializers.Serializer[Any]):
    """The fields of a body. An unknown one is refused, because it is a mistyped one."""

    def to_internal_value(self, data: Any) -> Any:
        if unknown := sorted(set(data) - set(self.fields)):
            raise serializers.ValidationError({unknown[0]: ["There is no such field."]})
        for name, value in data.items():
            _require_type(name, value, self.fields[name])
        return super().to_internal_value(data)

    @classmethod
    def of(cls, request: Request) -> dict[str, Any]:
        """The valid fields of the request's body that were sent, else ``InvalidField`` with the first."""
        read = cls(data=request.data)
        if not read.is_valid():
            name, problems = next(iter(read.errors.items()))
            where = str(name)
            if isinstance(problems, dict):  # of the items of a list, by their place
                place, problems = next(iter(problems.items()))
                where += f"[{place}]"
            raise InvalidField(f"'{where}': {problems[0]}", param=where)
        return dict(read.validated_data)


def _require_type(
    name: str, value: Any, field: serializers.Field[Any, Any, Any, Any] | Any
) -> None:
    """Raise ``ValidationError`` where ``value`` is of another JSON type than ``field`` takes."""
    if value is None:
        return
    for kind, (taken, words) in _JSON_TYPES.items():
        if isinstance(field, kind):
            if type(value) is not taken:
                raise serializers.ValidationError({name: [f"It must be {words}."]})
            break
    if isinstance(field, serializers.ListField):
        for index, each in enumerate(value):
            _require_type(f"{name}[{index}]", each, field.child)


class LimitField(serializers.Field[Any, Any, Any, Any]):
    """A positive whole number, or the word for none, which becomes ``None``."""

    def __init__(self, none: str | None = "unlimited", **options: Any) -> None:
        super().__init__(allow_null=none is None, **options)
        self._none = none
        number = {"type": "integer", "minimum": 1, "maximum": _HIGHEST_NUMBER}
        self.json_schema = number if none is None else {"anyOf": [number, {"const": none}]}

    def to_internal_value(self, data: Any) -> int | None:
        if self._none is not None and data == self._none:
            return None
        if type(data) is not int or not 1 <= data <= _HIGHEST_NUMBER:
            other = "null" if self._none is None else f'"{self._none}"'
            raise serializers.ValidationError(f"It must be a positive whole number or {other}.")
        return data

    def to_representation(self, value: Any) -> Any:
        return value


class ManagementView(ApiView):
    """Requires an admin key, to which the audit log attributes every change."""

    parser_classes: ClassVar[list[type[BaseParser]]] = [JsonObject]  # type: ignore[misc]
    parameters_of_changes: ClassVar[tuple[str, ...]] = ()
    """The parameters of the query that requests other than GET take."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        try:
            found = admin_keys.authenticate(request.META.get("HTTP_AUTHORIZATION"))
        except InvalidCredential:
            try:
                throttle.charge_wrong_key(request._request)
            except throttle.TooManyLogins as error:
                wait = {"retry-after": str(error.seconds)}
                raise RateLimitExceeded(str(error), headers=wait) from None
            raise
        setattr(request._request, trail.ACTOR, f"admin key {found.prefix} ({found.label})")
        if request.method in _CHANGING:
            require_parameters(request, *self.parameters_of_changes)
            _require_no_condition(request)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Keep answers, some of which hold a secret, out of caches."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer["cache-control"] = "no-store"
        return answer

    def handle_exception(self, exc: Exception) -> Response:
        """Name the field of what a service refuses."""
        if isinstance(exc, ValidationError):
            exc = refused(exc)
        return super().handle_exception(exc)


def refused(error: ValidationError) -> InvalidField:
    """A service's ``error``, with the first field that it names."""
    if not hasattr(error, "error_dict"):
        return InvalidField(" ".join(error.messages))
    name, messages = next(iter(error.message_dict.items()))
    if name == "__all__":
        return InvalidField(" ".join(messages))
    return InvalidField(f"'{name}': {' '.join(messages)}", param=name)


def page(request: Request, rows: models.QuerySet[Any]) -> tuple[models.QuerySet[Any], str | None]:
    """The rows of the page that the query asks for, by id, and the cursor of the next one.

    Raises ``InvalidQuery`` and ``InvalidCursor``.
    """
    limit = _limit(request.query_params.get("limit", str(DEFAULT_LIMIT)))
    if cursor := request.query_params.get("cursor"):
        rows = rows.filter(pk__gt=_position(cursor))
    found = list(rows.order_by("pk").values_list("pk", flat=True)[: limit + 1])
    shown = rows.model._default_manager.filter(pk__in=found[:limit]).order_by("pk")
    return shown, _cursor(found[limit - 1]) if len(found) > limit else None


def require_parameters(request: Request, *known: str) -> None:
    """Raise ``InvalidQuery`` for a parameter of the query that is not ``known``, or is there twice."""
    for name, values in request.query_params.lists():
        if name not in known:
            raise InvalidQuery(f"There is no parameter {name!r}."[:200], param=name[:100])
        if len(values) > 1:
            raise InvalidQuery(f"'{name}' is there twice.", param=name)


def _require_no_condition(request: Request) -> None:
    """Raise ``BadRequest`` for a condition that nothing evaluates: the change might be the one it forbids."""
    for name in ("If-Match", "If-Unmodified-Since"):
        if name in request.headers:
            raise BadRequest(f"{name} is not supported here. Send the request without it.")


def _limit(text: str) -> int:
    limit = int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0
    if not 1 <= limit <= HIGHEST_LIMIT:
        raise InvalidQuery(f"'limit' must be between 1 and {HIGHEST_LIMIT}.", param="limit")
    return limit


def _cursor(position: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(position.bytes).rstrip(b"=").decode()


def _position(cursor: str) -> uuid.UUID:
    try:
        return uuid.UUID(bytes=base64.b64decode(cursor + "==", altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        raise InvalidCursor(
            "'cursor' must be a 'next_cursor' from an earlier page, unchanged."
        ) from None
