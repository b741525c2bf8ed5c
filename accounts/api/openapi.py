"""Organizations, users and keys in the OpenAPI document of the management API.

docs/operate/automation.md describes the same in prose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from accounts.api.keys import ENDED, KeyChanges, KeyFields, RotationFields, ShownKey
from accounts.api.management import DEFAULT_LIMIT, HIGHEST_LIMIT, Fields
from accounts.api.meanings import BODIES
from accounts.api.meanings import SENT as SENT_MEANINGS
from accounts.api.organizations import OrganizationFields
from accounts.api.users import UserFields, UserLink
from accounts.facts import KeyFacts, OrganizationFacts, UserFacts
from core import errors
from core.api.openapi import (
    RETRY_AFTER,
    STRING,
    WWW_AUTHENTICATE,
    ErrorSchema,
    Json,
    Schemas,
    answer,
    body,
    content,
    explain,
    failures,
    header,
    path_parameter,
    query,
)
from core.api.serializer_schemas import schema_of
from core.errors import ApiError

ADMIN_KEY: Final = "admin_key"
"""The name of the security scheme."""
SENT: Final = (OrganizationFacts, UserFacts, UserLink, KeyFacts, ShownKey)

_EVERYWHERE: Final[tuple[type[ApiError], ...]] = (
    errors.InvalidCredential,
    errors.RateLimitExceeded,
    errors.InternalError,
    errors.ServerOverloaded,
    errors.ServerShuttingDown,
)
_HEADERS: Final[dict[int, Json]] = {
    401: WWW_AUTHENTICATE,
    429: RETRY_AFTER,
    503: {"retry-after": header("Whole seconds to wait.", always=False)},
}
_PAGE: Final[tuple[Json, ...]] = (
    query(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": HIGHEST_LIMIT, "default": DEFAULT_LIMIT},
        "The most that the page has.",
    ),
    query("cursor", STRING, "`next_cursor` of the page before."),
)
_LISTED: Final[tuple[type[ApiError], ...]] = (errors.InvalidQuery, errors.InvalidCursor)
_NAMED: Final[tuple[type[ApiError], ...]] = (errors.NotFound, errors.InvalidField)

Answers = Mapping[int, tuple[str, Json]]
"""What each status of success means, and the schema of its body."""


class Operations:
    """Makes operations, each with the failures that every one has; ``error_schema`` is the surface's."""

    def __init__(self, error_schema: ErrorSchema) -> None:
        self._error_schema = error_schema

    def operation(
        self, name: str, summary: str, answers: Answers, *also: type[ApiError], **more: Any
    ) -> Json:
        """An operation that can fail with ``also``; ``more`` are further members of it."""
        possible = dict.fromkeys((*_EVERYWHERE, *also))
        made = {
            str(status): answer(said, content(each)) for status, (said, each) in answers.items()
        }
        return {
            "operationId": name,
            "summary": summary,
            "security": [{ADMIN_KEY: []}],
            **more,
            "responses": {**made, **failures(possible, self._error_schema, _HEADERS)},
        }

    def change(
        self, name: str, summary: str, answers: Answers, fields: type[Fields], **more: Any
    ) -> Json:
        """An operation with a body of ``fields``; without one it is as an empty object."""
        schema = schema_of(fields)
        for each, member in schema["properties"].items():
            member["description"] = BODIES[each]
        sent = {"requestBody": body(schema, required=bool(schema["required"]))}
        return self.operation(
            name, summary, answers, *_NAMED, errors.RequestTooLarge, **sent, **more
        )

    def listing(
        self, name: str, summary: str, schema: Json, *also: type[ApiError], queries: Iterable[Json]
    ) -> Json:
        """An operation that answers a page of what ``schema`` describes."""
        page = object_of(
            data={"type": "array", "items": schema, "description": "Those of this page."},
            next_cursor={
                "type": ["string", "null"],
                "description": "Send it as `cursor` for the next page; null on the last one.",
            },
        )
        return self.operation(
            name,
            summary,
            {200: ("A page, in the order of the ids.", page)},
            *_LISTED,
            *also,
            parameters=[*queries, *_PAGE],
        )


def object_of(**members: Json) -> Json:
    """The schema of an object that has all of ``members``."""
    return {"type": "object", "required": list(members), "properties": members}


def _at(parameter: Json, methods: Json) -> Json:
    """The operations of a path, each with the parameter of the path."""
    return {
        method: {**operation, "parameters": [parameter, *operation.get("parameters", ())]}
        for method, operation in methods.items()
    }


def paths(schemas: Schemas, error_schema: ErrorSchema) -> Json:
    """Every path of ``accounts.api.urls``."""
    explain(schemas.components, SENT_MEANINGS)
    make = Operations(error_schema)
    return {**_organizations(make, schemas), **_users(make, schemas), **_keys(make, schemas)}


def _organizations(make: Operations, schemas: Schemas) -> Json:
    one = schemas.of[OrganizationFacts]
    shown: Answers = {200: ("The organization.", one)}
    made: Answers = {201: ("It was made.", one), 200: ("It was there, and is changed.", one)}
    return {
        "/manage/v1/organizations": {
            "get": make.listing("listOrganizations", "Every organization", one, queries=())
        },
        "/manage/v1/organizations/{organization}": _at(
            path_parameter("organization", "Its name or its id."),
            {
                "get": make.operation("getOrganization", "One organization", shown, *_NAMED),
                "put": make.change(
                    "putOrganization",
                    "Make an organization, or change it",
                    made,
                    OrganizationFields,
                    description="What is not sent stays as it is.",
                ),
                "patch": make.change(
                    "changeOrganization", "Change an organization", shown, OrganizationFields
                ),
                "delete": make.operation(
                    "disableOrganization",
                    "Disable an organization",
                    shown,
                    *_NAMED,
                    description="All its keys are refused within a second. `PATCH` with "
                    "`disabled` false enables it again.",
                ),
            },
        ),
    }


def _users(make: Operations, schemas: Schemas) -> Json:
    user = path_parameter("user", "The email address or the id.")
    return {
        "/manage/v1/users": {
            "get": make.listing(
                "listUsers",
                "Users of console and admin",
                schemas.of[UserFacts],
                *_NAMED,
                queries=[query("organization", STRING, "Only its members. Its name or id.")],
            )
        },
        "/manage/v1/users/{user}": _at(user, _user(make, schemas.of[UserFacts])),
        "/manage/v1/users/{user}/link": _at(
            user,
            {
                "post": make.operation(
                    "linkUser",
                    "Make a one-time link with which a user sets a password",
                    {201: ("The link, shown once.", schemas.of[UserLink])},
                    *_NAMED,
                )
            },
        ),
    }


def _user(make: Operations, one: Json) -> Json:
    shown: Answers = {200: ("The user.", one)}
    made: Answers = {201: ("The user was made.", one), 200: ("The user is changed.", one)}
    return {
        "get": make.operation("getUser", "One user", shown, *_NAMED),
        "put": make.change(
            "putUser",
            "Make a user, or change one",
            made,
            UserFields,
            description="A new user needs an organization, and has no password. Operators are "
            "shown and not changed.",
        ),
        "patch": make.change("changeUser", "Change a user", shown, UserFields),
        "delete": make.operation(
            "disableUser",
            "Disable a user",
            shown,
            *_NAMED,
            description="The user's sessions end. `PATCH` with `active` true enables again.",
        ),
    }


def _keys(make: Operations, schemas: Schemas) -> Json:
    one = schemas.of[ShownKey]
    with_secret = ("The key, with its secret in `key`, shown once.", one)
    made: Answers = {
        201: with_secret,
        200: ("One of this organization, scope and label works already; `key` is null.", one),
    }
    owner = {**query("organization", STRING, "Its name or id."), "required": True}
    owner["allowEmptyValue"] = False
    standing = query(
        "status", {"enum": list(ENDED)}, "Those that work, which is the default, or have ended."
    )
    named = [owner, standing]
    api_key = path_parameter("api_key_id", "The id of the key.")
    rotation = make.change(
        "rotateKey",
        "Make the successor of a key",
        {201: with_secret},
        RotationFields,
        description="The old one works on for `overlap_seconds`.",
    )
    return {
        "/manage/v1/keys": {
            "get": make.listing(
                "listKeys",
                "The keys of an organization",
                schemas.of[KeyFacts],
                *_NAMED,
                queries=named,
            ),
            "post": make.change("createKey", "Make an API key", made, KeyFields),
        },
        "/manage/v1/keys/{api_key_id}": _at(api_key, _key(make, one)),
        "/manage/v1/keys/{api_key_id}/rotate": _at(api_key, {"post": rotation}),
    }


def _key(make: Operations, one: Json) -> Json:
    shown: Answers = {200: ("The key, without its secret.", one)}
    return {
        "get": make.operation("getKey", "One key", shown, errors.NotFound),
        "patch": make.change("changeKey", "Change a key", shown, KeyChanges),
        "delete": make.operation("revokeKey", "Revoke a key for good", shown, errors.NotFound),
    }
