"""What each field of organizations, users and keys means in the management API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PLAN: Final = "`enterprise` has the Hindi voices as well."
_PRIORITY: Final = "Who goes first where requests wait for a model server."
_LIMITS: Final = {
    "requests_per_minute": "Chat requests a minute.",
    "tokens_per_minute": "Tokens a minute, reserved at admission and settled at the end.",
    "speech_requests_per_minute": "Speech requests a minute; a WebSocket session is one.",
    "speech_characters_per_day": "Characters to speak in a UTC day.",
}
_CAPTURES: Final = "Whether callers may have the content of single requests kept for operators."
_KEY: Final = {
    "prefix": "The beginning of the key, which is no secret.",
    "api_key_id": "The id of the key, as in the usage.",
    "organization": "The name of the organization.",
    "label": "The name of the key for people.",
    "scope": "What the key opens: chat, usage or speech.",
    "status": "`active`, or how it ended.",
    "requests_per_minute": "A limit of the key alone; null where only the organization's applies.",
    "tokens_per_minute": "A limit of the key alone; null where only the organization's applies.",
    "priority": f"{_PRIORITY} Null is the organization's.",
    "created_at": "When it was made.",
    "last_used_at": "When it was last used, to about a minute; null where it never was.",
    "expires_at": "When it stops working; null is never.",
    "revoked_at": "When it was revoked, or null.",
}

SENT: Final[Mapping[str, Mapping[str, str]]] = {
    "OrganizationFacts": {
        **_LIMITS,
        "name": "The name, by which it is found too.",
        "organization_id": "The id of the organization, as in the usage.",
        "status": "`enabled`, or `disabled`: then all its keys are refused.",
        "plan": _PLAN,
        "priority": _PRIORITY,
        "working_keys": "How many of its keys work.",
        "diagnostic_captures": _CAPTURES,
        "created_at": "When it was made.",
    },
    "UserFacts": {
        "email": "The address, with which the user logs in.",
        "user_id": "The id of the user.",
        "active": "Whether the user may log in.",
        "operator": "Whether the user may enter the admin. It cannot be set here.",
        "superuser": "Whether the user has every right there. It cannot be set here.",
        "organizations": "The names of the organizations that the user belongs to.",
        "owner_of": "Those among them of which the user is an owner.",
        "last_login": "When the user last logged in, or null.",
    },
    "UserLink": {
        "link": "Leads to a page that sets a password. It works once, until the next login.",
        "until": "When it stops working.",
    },
    "KeyFacts": _KEY,
    "ShownKey": {**_KEY, "key": "The whole secret, in the answer that made it; else null."},
}
BODIES: Final[Mapping[str, str]] = {
    **{
        name: f"{meaning} A new organization without it has the default of the settings."
        for name, meaning in _LIMITS.items()
    },
    "plan": _PLAN,
    "priority": f"{_PRIORITY} Null, of a key, is the organization's.",
    "diagnostic_captures": _CAPTURES,
    "disabled": "`true` has all its keys refused within a second; `false` enables it again.",
    "organizations": "The names of all that the user belongs to; a new user needs one.",
    "owner_of": "The names of all that the user is an owner of, among `organizations`. One that has no owner "
    "can be added; further owners are made by owners, in the console.",
    "active": "`false` ends the user's sessions; `true` lets the user log in again.",
    "organization": "The organization that the key is for, by its name or id.",
    "scope": "What the key opens: chat, usage or speech. It cannot change later.",
    "label": "A name for people. While a key of this organization, scope and label works, no other "
    "is made.",
    "expires_at": "When it stops working; null is never.",
    "overlap_seconds": "How long the old key works on beside its successor.",
}
