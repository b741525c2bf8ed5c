"""The menu over every page of the admin, and the tables that its home leaves to the pages of their apps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse

SECOND_LEVEL: Final = frozenset(
    {
        "auth.Group",
        "inference.CaptureReading",
        "inference.WeightsRecord",
        "speech.CloneUpload",
        "usage.SpeechDay",
    }
)
"""Tables that are not on the home: the lists of what they belong to lead there."""
BESIDE: Final[Mapping[str, Sequence[str]]] = {
    "accounts.User": ("auth.Group",),
    "inference.DiagnosticCapture": ("inference.CaptureReading",),
    "inference.ModelEntry": ("inference.WeightsRecord",),
    "speech.VoiceClone": ("speech.CloneUpload",),
    "speech.SpeechBackend": ("speech.CloneUpload",),
    "usage.SpeechRow": ("usage.SpeechDay",),
}
"""The tables that the list of each of these leads to."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A part of the admin: its first page, the rights of which one opens it, and its other pages."""

    label: str
    page: str
    rights: tuple[str, ...]
    paths: tuple[str, ...]
    """Beginnings of the paths, below the admin, of all its pages."""


_MENU: Final = (
    _Entry("Now", "index", (), ("find/",)),
    _Entry(
        "Customers",
        "accounts_organization_changelist",
        ("accounts.view_organization", "accounts.change_organization"),
        ("accounts/organization/", "accounts/user/", "accounts/apikey/", "customer/", "key/"),
    ),
    _Entry(
        "Models",
        "inference_modelentry_changelist",
        ("inference.view_modelentry", "inference.change_modelentry"),
        ("inference/modelentry/", "inference/weightsrecord/", "speech/voice"),
    ),
    _Entry(
        "Servers",
        "inference_backend_changelist",
        ("inference.view_backend", "inference.change_backend"),
        ("inference/backend/", "speech/speechbackend/", "speech/cloneupload/"),
    ),
    _Entry("Money", "usage_sums", ("usage.view_usagerow",), ("usage/",)),
    _Entry(
        "Audit",
        "accounts_auditentry_changelist",
        ("accounts.view_auditentry",),
        ("accounts/auditentry/", "inference/diagnosticcapture/", "inference/capturereading/"),
    ),
)


@dataclass(frozen=True, slots=True)
class Item:
    """A link of the menu."""

    label: str
    address: str
    is_current: bool


def menu(request: HttpRequest) -> list[Item]:
    """The links that the viewer may open."""
    home = reverse("admin:index")
    below = request.path.removeprefix(home)
    found = []
    for entry in _MENU:
        if entry.rights and not any(map(request.user.has_perm, entry.rights)):
            continue
        is_current = below.startswith(entry.paths) or (not below and entry.page == "index")
        found.append(Item(entry.label, reverse(f"admin:{entry.page}"), is_current))
    return found
