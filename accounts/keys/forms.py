"""Forms that make, rotate and revoke keys, for the console and the admin."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, ClassVar, Final

from django import forms
from django.core.exceptions import ValidationError
from django.core.signing import BadSignature, Signer

from accounts.keys import admin_keys
from accounts.keys.keys import require_right_to_end, require_room
from accounts.models import AdminKey, ApiKey, Scope
from core.names import check_name

_OPERATORS: Final = "operators"
_SALT: Final = "accounts.keys.forms"


def one_time_token(owner: str) -> str:
    """Return a token for one form of ``owner``, with which it makes one key however often it is sent.

    It is the id of the key to be made, signed, so that a client cannot choose an id.
    """
    return Signer(salt=f"{_SALT}:{owner}").sign(str(uuid.uuid4()))


def key_id_of(token: str, owner: str) -> uuid.UUID:
    """Return the id in ``token``, or a new one where the token is not one of ``owner``."""
    try:
        return uuid.UUID(Signer(salt=f"{_SALT}:{owner}").unsign(token))
    except BadSignature:
        return uuid.uuid4()


class NewKeyForm(forms.Form):
    """Scope and label of a key to be made."""

    one_time = forms.CharField(required=False, widget=forms.HiddenInput)
    scope = forms.ChoiceField(choices=Scope.choices, widget=forms.RadioSelect)
    label = forms.CharField(
        max_length=80,
        help_text="Where it will be used, such as “checkout, production”. Shown in the usage by key.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        check_name(cleaned.get("label", ""), ApiKey(), "label")
        return cleaned


class NewKeyOfOrganizationForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """A key that an operator makes for an organization."""

    one_time = forms.CharField(
        required=False, widget=forms.HiddenInput, initial=lambda: one_time_token(_OPERATORS)
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if (organization := cleaned.get("organization")) is not None:
            require_room(organization)
        # After the lock of the organization, so that of two at once the second finds the first.
        key_id = key_id_of(cleaned.get("one_time", ""), _OPERATORS)
        if (earlier := ApiKey.objects.filter(pk=key_id).first()) is not None:
            raise ValidationError(
                f"This form made the key {earlier.prefix}… already. Its secret was shown once."
            )
        self.instance.pk = key_id
        return cleaned


class NewAdminKeyForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """An admin key that an operator makes."""

    one_time = forms.CharField(
        required=False, widget=forms.HiddenInput, initial=lambda: one_time_token(_OPERATORS)
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        admin_keys.require_room()
        # After the lock, so that of two at once the second finds the first.
        key_id = key_id_of(cleaned.get("one_time", ""), _OPERATORS)
        if (earlier := AdminKey.objects.filter(pk=key_id).first()) is not None:
            raise ValidationError(
                f"This form made the key {earlier.prefix}… already. Its secret was shown once."
            )
        self.instance.pk = key_id
        return cleaned


class KeyOfOrganizationForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """What an operator may change of a key."""

    may_postpone: ClassVar[bool] = False
    """Whether the operator may let the key end later than it would."""

    def clean_expires_at(self) -> datetime | None:
        until: datetime | None = self.cleaned_data["expires_at"]
        if "expires_at" in self.changed_data:
            require_right_to_end(self.instance, until, may_postpone=self.may_postpone)
        return until


class RotationForm(forms.Form):
    """How long the old key still works, in seconds."""

    overlap = forms.TypedChoiceField(
        label="The old key",
        coerce=int,
        initial=86_400,
        widget=forms.RadioSelect,
        choices=(
            (86_400, "works for one more day"),
            (3_600, "works for one more hour"),
            (604_800, "works for one more week"),
            (0, "ends now: whoever still uses it is refused"),
        ),
    )


class RevocationForm(forms.Form):
    """Asks for the name of the key, because a revocation cannot be undone."""

    confirmation = forms.CharField(
        label="Type the label or the prefix of the key",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, api_key: ApiKey, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._accepted = {api_key.prefix, api_key.label.strip()} - {""}

    def clean_confirmation(self) -> str:
        typed: str = self.cleaned_data["confirmation"]
        # The pages show a prefix with an ellipsis, which people copy along.
        if typed.rstrip("….") not in self._accepted and typed not in self._accepted:
            raise forms.ValidationError("That is neither the label nor the prefix of this key.")
        return typed
