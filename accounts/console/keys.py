"""The console's pages for API keys: list, create, rotate, revoke.

A secret is only in the response to the form that made it: a redirect would have to store it. The
same form sent again, by a reload of that response, makes no second key. Each action is recorded in
the admin's history of the key.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from accounts import changes
from accounts.console.addresses import redirect
from accounts.console.base import ConsoleView
from accounts.console.first_request import first_request
from accounts.console.snippets import KEY_VARIABLE
from accounts.keys import keys
from accounts.keys.forms import (
    NewKeyForm,
    RevocationForm,
    RotationForm,
    key_id_of,
    one_time_token,
)
from accounts.keys.keys import KeyStatus, NewKey, NotRotatable, TooManyKeys
from accounts.models import ApiKey, Organization, Scope
from core import clock

PAGE_KEYS = 50
_LIVE = (KeyStatus.ACTIVE, KeyStatus.EXPIRING)


@dataclass(frozen=True, slots=True)
class ScopeChoice:
    """A scope as the form offers it."""

    value: str
    label: str
    prefix: str
    opens: str


SCOPES = tuple(
    ScopeChoice(scope.value, str(scope.label), keys.PREFIXES[scope], opens)
    for scope, opens in (
        (Scope.INFERENCE, "Chat completions and the model catalog."),
        (Scope.READ, "Usage figures and their export, and the model catalog. Sends no requests."),
        (Scope.SPEECH, "Text to speech, and the organization's cloned voices."),
    )
)


@dataclass(frozen=True, slots=True)
class KeyUse:
    """What a key was used for lately; ``exact`` has what ``text`` rounds."""

    text: str
    exact: str


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key as the list shows it."""

    api_key: ApiKey
    status: KeyStatus
    use: KeyUse | None = None

    @property
    def rotatable(self) -> bool:
        return self.status is KeyStatus.ACTIVE

    @property
    def live(self) -> bool:
        return self.status in _LIVE

    @property
    def name(self) -> str:
        return self.api_key.label or f"{self.api_key.prefix}…"


@dataclass(frozen=True, slots=True)
class KeyList:
    """A page of working or of ended keys, and the links beside it."""

    lines: list[KeyLine]
    total: int
    newer: str | None
    older: str | None
    later: bool
    """Whether this is not the first page."""


class KeyView(ConsoleView):
    """The base of the pages about keys."""

    section = "keys"

    def api_key(self, key_id: uuid.UUID) -> ApiKey:
        """The organization's own key. Raises ``Http404`` for any other id."""
        api_key = ApiKey.objects.filter(organization=self.organization, pk=key_id).first()
        if api_key is None:
            raise Http404
        return api_key

    def live_key(self, request: HttpRequest, key_id: uuid.UUID) -> ApiKey | None:
        """The organization's own key; ``None``, with a message, when it has ended."""
        api_key = self.api_key(key_id)
        status = keys.status(api_key)
        if status in _LIVE:
            return api_key
        messages.info(request, f"The key {api_key.prefix}… is {status.value} already.")
        return None

    def secret_page(self, made: NewKey, old: ApiKey | None = None) -> HttpResponse:
        return self.page(
            "console/key_secret.html",
            made=made,
            old=old,
            overlap=old is not None and keys.status(old) in _LIVE,
            variable=KEY_VARIABLE,
            first=first_request(self.request, self.organization, Scope(made.api_key.scope)),
        )


class KeysView(KeyView):
    """The keys of the organization, of the three scopes, newest first, in pages.

    ``page`` counts the pages of keys that work, ``ended`` those of keys that have ended.
    """

    def get(self, request: HttpRequest) -> HttpResponse:
        pages = {
            name: Paginator(keys.of_organization(self.organization, live=live), PAGE_KEYS).get_page(
                request.GET.get(name)
            )
            for name, live in (("page", True), ("ended", False))
        }
        uses = self.uses([api_key for page in pages.values() for api_key in page])
        return self.page(
            "console/keys.html",
            live=_key_list("page", pages, uses),
            ended=_key_list("ended", pages, uses),
        )

    def uses(self, api_keys: Sequence[ApiKey]) -> Mapping[uuid.UUID, KeyUse]:
        """The use of ``api_keys``; keys without any may be left out. For apps that meter it."""
        return {}


class NewKeyView(KeyView):
    def get(self, request: HttpRequest) -> HttpResponse:
        token = one_time_token(str(self.organization.pk))
        return self._form_page(NewKeyForm(initial={"scope": Scope.INFERENCE, "one_time": token}))

    def post(self, request: HttpRequest) -> HttpResponseBase:
        form = NewKeyForm(request.POST)
        if not form.is_valid():
            return self._form_page(form)
        key_id = key_id_of(form.cleaned_data["one_time"], str(self.organization.pk))
        try:
            with transaction.atomic():
                changes.lock(changes.KEYS)
                # Locks the organization, so that of two at once the second finds the first one's key.
                Organization.objects.select_for_update(no_key=True).get(pk=self.organization.pk)
                own = ApiKey.objects.filter(organization=self.organization, pk=key_id)
                if (earlier := own.first()) is not None:
                    return self.page("console/key_made.html", status=409, api_key=earlier)
                made = self._made(key_id, form)
        except TooManyKeys as error:
            form.add_error(None, error)
            return self._form_page(form)
        return self.secret_page(made)

    def _made(self, key_id: uuid.UUID, form: NewKeyForm) -> NewKey:
        """Store the key that ``form`` describes. Raises ``TooManyKeys``."""
        return keys.store_with_secret(
            ApiKey(
                pk=key_id,
                organization=self.organization,
                scope=form.cleaned_data["scope"],
                label=form.cleaned_data["label"],
            )
        )

    def _form_page(self, form: NewKeyForm) -> HttpResponse:
        return self.page("console/key_new.html", form=form, scopes=SCOPES)


class RotateKeyView(KeyView):
    def get(self, request: HttpRequest, key_id: uuid.UUID) -> HttpResponse:
        api_key = self.live_key(request, key_id)
        if api_key is None:
            return redirect("console-keys")
        return self.page("console/key_rotate.html", api_key=api_key, form=RotationForm())

    def post(self, request: HttpRequest, key_id: uuid.UUID) -> HttpResponse:
        api_key = self.api_key(key_id)
        form = RotationForm(request.POST)
        if not form.is_valid():
            return self.page("console/key_rotate.html", api_key=api_key, form=form)
        until = clock.now() + timedelta(seconds=form.cleaned_data["overlap"])
        try:
            with transaction.atomic():
                made = keys.rotate(api_key, until)
        except NotRotatable as error:
            messages.error(request, str(error))
            return redirect("console-keys")
        except TooManyKeys as error:
            messages.error(request, error.message)
            return redirect("console-keys")
        return self.secret_page(made, api_key)


class RevokeKeyView(KeyView):
    def get(self, request: HttpRequest, key_id: uuid.UUID) -> HttpResponse:
        api_key = self.live_key(request, key_id)
        if api_key is None:
            return redirect("console-keys")
        return self.page(
            "console/key_revoke.html", api_key=api_key, form=RevocationForm(api_key=api_key)
        )

    def post(self, request: HttpRequest, key_id: uuid.UUID) -> HttpResponse:
        api_key = self.live_key(request, key_id)
        if api_key is None:
            return redirect("console-keys")
        form = RevocationForm(request.POST, api_key=api_key)
        if not form.is_valid():
            return self.page("console/key_revoke.html", api_key=api_key, form=form)
        with transaction.atomic():
            keys.revoke(api_key)
        messages.success(request, f"The key {api_key.prefix}… is revoked.")
        return redirect("console-keys")


def _key_list(
    name: str, pages: Mapping[str, Page[ApiKey]], uses: Mapping[uuid.UUID, KeyUse]
) -> KeyList:
    """The list paged by the parameter ``name``; its links keep the other list's page."""
    page = pages[name]

    def link(number: int) -> str:
        numbers = {each: pages[each].number for each in pages} | {name: number}
        return f"?{urlencode(numbers)}"

    return KeyList(
        [KeyLine(each, keys.status(each), uses.get(each.pk)) for each in page],
        page.paginator.count,
        link(page.previous_page_number()) if page.has_previous() else None,
        link(page.next_page_number()) if page.has_next() else None,
        page.has_previous(),
    )
