"""The page of pronunciations: the list, a form that adds or replaces one, and deletion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse

from accounts.console.addresses import redirect
from accounts.console.base import ConsoleView
from core.errors import ApiError
from speech.console.wording import in_words
from speech.errors import MOST_PRONUNCIATIONS, PronunciationNotFound
from speech.models import LONGEST_WORD, Language
from speech.text.pronunciations import Alphabet
from speech.voices.pronunciations import rows
from speech.voices.pronunciations.views import require_ipa
from speech.voices.pronunciations.wire import checked

_FIELDS: Final = ("word", "pronunciation", "alphabet", "language")
LANGUAGES: Final = {Language.ENGLISH.value: "English", Language.HINDI.value: "Hindi"}


class PronunciationsPage(ConsoleView):
    """The organization's pronunciations; a POST adds one."""

    section = "voices"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._shown({}, None)

    def post(self, request: HttpRequest) -> HttpResponse:
        typed = {name: request.POST.get(name, "") for name in _FIELDS}
        if request.POST.get("case_sensitive"):
            typed["case_sensitive"] = "on"
        try:
            entry = checked(
                {
                    **{name: value or None for name, value in typed.items()},
                    "case_sensitive": "case_sensitive" in typed,
                }
            )
            if entry.alphabet is Alphabet.IPA:
                require_ipa(self.organization.plan)
            row, is_new = rows.put(entry, str(self.organization.pk))
        except ApiError as error:
            return self._shown(typed, error)
        done = "added" if is_new else "replaced"
        messages.success(request, f"The pronunciation of {row.word} is {done}.")
        return redirect("console-pronunciations")

    def _shown(self, typed: Mapping[str, str], error: ApiError | None) -> HttpResponse:
        return self.page(
            "console/pronunciations.html",
            status=200 if error is None else 400,
            lines=rows.existing(str(self.organization.pk)),
            typed=typed,
            problem=None if error is None else in_words(error),
            faulty=None if error is None else error.param,
            most=MOST_PRONUNCIATIONS,
            longest=LONGEST_WORD,
            languages=LANGUAGES,
        )


class DeletePronunciationView(ConsoleView):
    """Deletes a pronunciation of the organization."""

    section = "voices"
    http_method_names: list[str] = ["post"]  # noqa: RUF012  # as Django declares it

    def post(self, request: HttpRequest, pronunciation: str) -> HttpResponse:
        try:
            row = rows.delete(pronunciation, str(self.organization.pk))
        except PronunciationNotFound:
            raise Http404 from None
        messages.success(request, f"The pronunciation of {row.word} is deleted.")
        return redirect("console-pronunciations")
