"""Base of the admin pages of chat and speech backends: a key stays with its address.

Both models have the columns ``base_url`` and ``api_key_env``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from svc_project.lib.variables import PREFIX

if TYPE_CHECKING:  # generic in the stubs only
    BackendModelForm = forms.ModelForm[Any]
    BackendModelAdmin = admin.ModelAdmin[Any]
else:
    BackendModelForm = forms.ModelForm
    BackendModelAdmin = admin.ModelAdmin

AGAIN: Final = "key_variable_again"


class KeptKeyForm(BackendModelForm):
    """Refuses another base URL for a backend with a key, unless the key's variable is retyped."""

    key_variable_again = forms.CharField(
        label="API key variable, again",
        required=False,
        max_length=100,
        help_text="Only to give a backend with a key another base URL: the key goes there then.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "api_key_env" in self.fields:
            self.fields["api_key_env"].help_text = (
                "Name of the environment variable that holds the backend's key. It begins with "
                f"{PREFIX}, or is listed in SVC_BACKEND_KEY_VARIABLES. Empty: no key."
            )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        address, variable = cleaned.get("base_url"), cleaned.get("api_key_env")
        if self.instance._state.adding or not address or not variable:
            return cleaned
        is_moved = address.rstrip("/") != self.initial["base_url"].rstrip("/")
        is_kept = variable == self.initial["api_key_env"]
        if is_moved and is_kept and cleaned.get(AGAIN) != variable:
            self.add_error(
                AGAIN,
                f"The key in {variable} would go to another address. Type {variable} here if it "
                "should, or empty the API key variable.",
            )
        return cleaned


class KeptKeyAdmin(BackendModelAdmin):
    form = KeptKeyForm

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Add the field for the variable where an existing row may be changed."""
        asks = obj is not None and self.has_change_permission(request, obj)
        return [
            (title, {**options, "fields": _asking(options["fields"], asks=asks)})
            for title, options in super().get_fieldsets(request, obj)
        ]


def _asking(fields: Any, *, asks: bool) -> list[Any]:
    kept = [field for field in fields if field != AGAIN]
    if asks and "api_key_env" in kept:
        kept.insert(kept.index("api_key_env") + 1, AGAIN)
    return kept
