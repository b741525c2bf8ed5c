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

EMPTY: Final[Mapping[str, str]] = {
    "accounts.AdminKey": "No admin key yet. The management API needs one: automation and configuration files use it.",
    "accounts.ApiKey": "No key yet. Customers make theirs in the console; here a key can be added for them.",
    "accounts.Organization": "No organization yet. Add one for each customer: it holds keys, limits and members.",
    "auth.Group": "No group yet. A group holds rights that several operators have.",
    "inference.Backend": "No model server yet. Add a server checks its address and publishes what it finds.",
    "inference.CaptureReading": "Nobody has read a diagnostic capture.",
    "inference.DiagnosticCapture": "Nothing is captured. Callers ask for it with x-svc-diagnostic-capture, or an organization "
    "keeps the content of its failed requests.",
    "inference.ModelEntry": "No model yet. Add a server, under Servers, publishes the models of a server in one step.",
    "inference.WeightsRecord": "No weights yet. A model names the weights that it serves.",
    "speech.CloneUpload": "No speech server holds a copy of a clone.",
    "speech.SpeechBackend": "No speech server. Voices are spoken by the embedded engines.",
    "speech.Voice": "No voice yet. Add one of an embedded engine or of a speech server.",
    "speech.VoiceClone": "No clone yet. Customers make theirs in the console or over the API.",
    "usage.Refusal": "No request was refused in this time.",
    "usage.SpeechDay": "Nothing was spoken yet.",
    "usage.SpeechRow": "No speech request in this time.",
    "usage.UsageRow": "No chat request in this time.",
}
"""What an empty list says: what its rows are, or where they come from."""


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
