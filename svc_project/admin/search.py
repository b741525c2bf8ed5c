"""The search for everything on the admin's home: it leads to the record that a person has in the hand.

It is sent by POST and answered without an address of its own, so that what is pasted, an API key among
it, is in no address and no log. A whole key is looked up by its digest, as the gateway does.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from accounts.keys.keys import by_secret, cut_secrets, shown_part
from accounts.models import AdminKey, ApiKey, Organization, User
from inference.models import Backend, ModelEntry
from usage.models import Refusal, SpeechRow, UsageRow

MOST_FOUND: Final = 10
"""Records of a kind that are listed."""
LONGEST: Final = 300
"""Characters of a search."""
_REQUEST: Final = "req_"


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that was found, and where it is shown."""

    kind: str
    name: str
    address: str


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of record: who may see it, and how it is found by a word or an id."""

    permission: str
    find: Callable[[str, uuid.UUID | None], Iterator[Hit]]


def page(request: HttpRequest) -> HttpResponse:
    """Lead to the only record that was found, or list what was found; GET leads to the home."""
    if request.method != "POST":
        return HttpResponseRedirect(reverse("admin:index"))
    typed = request.POST.get("find", "").strip()[:LONGEST]
    secret_prefix = shown_part(typed)
    hits = _of_secret(request, typed) if secret_prefix else _of_words(request, typed)
    if len(hits) == 1:
        return HttpResponseRedirect(hits[0].address)
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": "Search",
        "term": secret_prefix or cut_secrets(typed),
        "is_secret": secret_prefix is not None,
        "hits": hits,
        "most": MOST_FOUND,
    }
    answer = TemplateResponse(request, "admin/search.html", context)
    answer["cache-control"] = "no-store"
    return answer


def _of_secret(request: HttpRequest, secret: str) -> list[Hit]:
    if not request.user.has_perm("accounts.view_apikey"):
        return []
    key = by_secret(secret)
    return [] if key is None else [_key_hit(key)]


def _of_words(request: HttpRequest, typed: str) -> list[Hit]:
    # PostgreSQL cannot compare with a null character.
    term = cut_secrets(typed).rstrip("….")
    if not term or "\0" in term:
        return []
    try:
        given: uuid.UUID | None = uuid.UUID(term)
    except ValueError:
        given = None
    return [
        hit
        for kind in _KINDS
        if request.user.has_perm(kind.permission)
        for hit in kind.find(term, given)
    ]


def _either(given: uuid.UUID | None, words: Q) -> Q:
    return words if given is None else Q(pk=given)


def _requests(model: type[UsageRow | SpeechRow | Refusal]) -> Callable[..., Iterator[Hit]]:
    name = f"admin:usage_{model._meta.model_name}_change"

    def find(term: str, given: uuid.UUID | None) -> Iterator[Hit]:
        if term.startswith(_REQUEST):
            for row in model._default_manager.filter(request_id=term):
                yield Hit("request", row.request_id, reverse(name, args=[row.request_id]))

    return find


def _organizations(term: str, given: uuid.UUID | None) -> Iterator[Hit]:
    rows = Organization.objects.filter(_either(given, Q(name__icontains=term)))
    for row in rows.order_by("name")[:MOST_FOUND]:
        yield Hit("organization", row.name, reverse("admin:customer", args=[row.pk]))


def _keys(term: str, given: uuid.UUID | None) -> Iterator[Hit]:
    rows = ApiKey.objects.filter(_either(given, Q(prefix=term) | Q(label=term)))
    for row in rows.select_related("organization").order_by("-created_at")[:MOST_FOUND]:
        yield _key_hit(row)


def _key_hit(key: ApiKey) -> Hit:
    name = f"{key.prefix}… {key.label} of {key.organization}"
    return Hit("API key", name, reverse("admin:key_card", args=[key.pk]))


def _admin_keys(term: str, given: uuid.UUID | None) -> Iterator[Hit]:
    for row in AdminKey.objects.filter(_either(given, Q(prefix=term)))[:MOST_FOUND]:
        address = reverse("admin:accounts_adminkey_change", args=[row.pk])
        yield Hit("admin key", f"{row.prefix}… {row.label}", address)


def _users(term: str, given: uuid.UUID | None) -> Iterator[Hit]:
    rows = User.objects.filter(_either(given, Q(email__icontains=term)))
    for row in rows.order_by("email")[:MOST_FOUND]:
        yield Hit("user", row.email, reverse("admin:accounts_user_change", args=[row.pk]))


def _models(term: str, given: uuid.UUID | None) -> Iterator[Hit]:
    rows = ModelEntry.objects.filter(_either(given, Q(identifier__icontains=term)))
    for row in rows.order_by("identifier")[:MOST_FOUND]:
        yield Hit(
            "model", row.identifier, reverse("admin:inference_modelentry_change", args=[row.pk])
        )


def _backends(term: str, given: uuid.UUID | None) -> Iterator[Hit]:
    words = Q(name__icontains=term) | Q(base_url__icontains=term)
    for row in Backend.objects.filter(_either(given, words)).order_by("name")[:MOST_FOUND]:
        address = reverse("admin:inference_backend_change", args=[row.pk])
        yield Hit("model server", row.name, address)


_KINDS: Final = (
    _Kind("usage.view_usagerow", _requests(UsageRow)),
    _Kind("usage.view_speechrow", _requests(SpeechRow)),
    _Kind("usage.view_refusal", _requests(Refusal)),
    _Kind("accounts.view_organization", _organizations),
    _Kind("accounts.view_apikey", _keys),
    _Kind("accounts.view_adminkey", _admin_keys),
    _Kind("accounts.view_user", _users),
    _Kind("inference.view_modelentry", _models),
    _Kind("inference.view_backend", _backends),
)
