"""The operators' pages for API keys. A secret is shown once, in the response that made it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar, Final

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.safestring import SafeString

from accounts.admin.secret_pages import SecretPagesAdmin
from accounts.keys import keys
from accounts.keys.forms import KeyOfOrganizationForm, NewKeyOfOrganizationForm, RotationForm
from accounts.keys.keys import KeyStatus, NewKey, NotRotatable, TooManyKeys
from accounts.models import ApiKey
from core import clock
from core.admin.columns import Tone, badge

DISABLED: Final = "Organization disabled"
_TONES: Final = {
    str(KeyStatus.ACTIVE.label): Tone.GOOD,
    str(KeyStatus.EXPIRING.label): Tone.WARN,
    DISABLED: Tone.BAD,
}


class StatusFilter(admin.SimpleListFilter):
    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(status.value, str(status.label)) for status in KeyStatus]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
        now = timezone.now()
        conditions = {
            KeyStatus.ACTIVE.value: Q(revoked_at=None, expires_at=None),
            KeyStatus.EXPIRING.value: Q(revoked_at=None, expires_at__gt=now),
            KeyStatus.EXPIRED.value: Q(revoked_at=None, expires_at__lte=now),
            KeyStatus.REVOKED.value: Q(revoked_at__isnull=False),
        }
        return queryset.filter(conditions.get(self.value() or "", Q()))


class ApiKeyAdmin(SecretPagesAdmin):
    secret_columns: ClassVar[frozenset[str]] = frozenset({"digest", "pepper"})

    list_display = (
        "shown_prefix",
        "organization",
        "label",
        "scope",
        "shown_class",
        "standing",
        "last_used_at",
        "expires_at",
        "created_on",
    )
    list_filter = ("scope", "priority", StatusFilter)
    list_select_related = ("organization",)
    search_fields = ("prefix", "label", "organization__name", "id")
    search_help_text = (
        "A label, an organization, a key's id or prefix, or a whole key, of which only the prefix is "
        "searched and stays in the address."
    )
    autocomplete_fields = ("organization",)
    show_full_result_count = False
    actions = ("rotate", "revoke")
    settable = ("label", "requests_per_minute", "tokens_per_minute", "priority", "expires_at")
    readonly = (
        "shown_prefix",
        "id",
        "organization",
        "scope",
        "shown_status",
        "shown_pepper",
        "created_at",
        "last_used_at",
        "revoked_at",
    )

    @admin.display(description="key", ordering="prefix")
    def shown_prefix(self, api_key: ApiKey) -> str:
        return f"{api_key.prefix}…"

    @admin.display(description="created", ordering="created_at")
    def created_on(self, api_key: ApiKey) -> str:
        """The day; its page has the moment."""
        return date_format(api_key.created_at, "j M Y")

    @admin.display(description="class", ordering="priority")
    def shown_class(self, api_key: ApiKey) -> str:
        """The class of its requests, and whether the organization gave it."""
        return api_key.priority or f"{api_key.organization.priority} (organization)"

    @admin.display(description="status")
    def standing(self, api_key: ApiKey) -> SafeString:
        words = self.shown_status(api_key)
        return badge(words.lower(), _TONES.get(words, Tone.QUIET))

    @admin.display(description="status")
    def shown_status(self, api_key: ApiKey) -> str:
        disabled_at = api_key.organization.disabled_at
        if disabled_at is not None and disabled_at <= clock.now():
            return DISABLED
        return str(keys.status(api_key).label)

    @admin.display(description="pepper")
    def shown_pepper(self, api_key: ApiKey) -> str:
        fingerprints = [keys.pepper_fingerprint(pepper) for pepper in settings.SVC_KEY_PEPPERS]
        if api_key.pepper not in fingerprints:
            return "No longer in SVC_KEY_PEPPERS: the key is refused."
        if api_key.pepper != fingerprints[0]:
            return "An older one: rotate the key before it is taken out of SVC_KEY_PEPPERS."
        return "The current one"

    def get_form(
        self,
        request: HttpRequest,
        obj: ApiKey | None = None,
        change: bool = False,  # noqa: FBT002  # Django's
        **kwargs: Any,
    ) -> Any:
        own = KeyOfOrganizationForm if change else NewKeyOfOrganizationForm
        made = super().get_form(request, obj, change, **{"form": own, **kwargs})
        if issubclass(made, KeyOfOrganizationForm):
            made.may_postpone = self.has_add_permission(request)
        return made

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> tuple[str, ...]:
        return (
            ("organization", "scope", *self.settable, "one_time")
            if obj is None
            else self.readonly + self.settable
        )

    def get_readonly_fields(
        self, request: HttpRequest, obj: ApiKey | None = None
    ) -> tuple[str, ...]:
        return () if obj is None else self.readonly

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Offer on the page of a key what the list offers for several."""
        api_key = self.get_object(request, unquote(object_id))
        offered = []
        if api_key is not None and self.has_change_permission(request, api_key):
            status = keys.status(api_key)
            if status is KeyStatus.ACTIVE and self.has_rotate_permission(request):
                offered.append(("rotate", "Rotate…"))
            if status in (KeyStatus.ACTIVE, KeyStatus.EXPIRING):
                offered.append(("revoke", "Revoke…"))
        context = self.offered(extra_context, offered)
        return super().change_view(request, object_id, form_url, context)

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            # Only these columns: the row may have been revoked or rotated since it was read.
            obj.save(update_fields=form.changed_data)
        else:
            request.new_key = keys.store_with_secret(obj)  # type: ignore[attr-defined]  # for response_add

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._secrets_page(request, [request.new_key])  # type: ignore[attr-defined]

    @admin.action(description="Revoke selected keys", permissions=["change"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApiKey]) -> HttpResponse | None:
        if "confirmed" not in request.POST:
            return self._confirmation_page(request, chosen, "revoke")
        with transaction.atomic():
            revoked = list(chosen.filter(revoked_at=None))
            for api_key in revoked:
                keys.revoke(api_key)
        self.message_user(request, f"{len(revoked)} keys revoked.", messages.SUCCESS)
        return None

    def has_rotate_permission(self, request: HttpRequest) -> bool:
        """Whether the operator may use ``rotate``, which changes one key and makes another."""
        return self.has_change_permission(request) and self.has_add_permission(request)

    @admin.action(description="Rotate selected keys", permissions=["rotate"])
    def rotate(self, request: HttpRequest, chosen: QuerySet[ApiKey]) -> HttpResponse | None:
        form = RotationForm(request.POST if "confirmed" in request.POST else None)
        if not form.is_valid():
            return self._confirmation_page(request, chosen, "rotate", form)
        until = clock.now() + timedelta(seconds=form.cleaned_data["overlap"])
        made: list[NewKey] = []
        with transaction.atomic():
            for api_key in chosen:
                try:
                    made.append(keys.rotate(api_key, until))
                except NotRotatable as error:
                    self.message_user(request, f"{api_key.prefix}…: {error}", messages.ERROR)
                except TooManyKeys as error:
                    refused = f"{api_key.prefix}…: {error.message}"
                    self.message_user(request, refused, messages.ERROR)
        return self._secrets_page(request, made) if made else None

    def _secrets_page(self, request: HttpRequest, made: Sequence[NewKey]) -> HttpResponse:
        rows = [
            (str(key.organization), key.get_scope_display(), key.label, new.secret)
            for new in made
            for key in (new.api_key,)
        ]
        return self.secrets_page(request, ("Organization", "Scope", "Label"), rows)

    def _confirmation_page(
        self,
        request: HttpRequest,
        chosen: QuerySet[ApiKey],
        action: str,
        form: forms.Form | None = None,
    ) -> HttpResponse:
        named = [
            (key, f"{key}, {key.organization}") for key in chosen.select_related("organization")
        ]
        return self.confirmation_page(request, named, action, form)
