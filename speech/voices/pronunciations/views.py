"""``GET`` and ``POST /v1/pronunciations``, ``DELETE /v1/pronunciations/{id}``."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from accounts.audit import trail
from accounts.models import ApiKey
from core.errors import InvalidField
from core.ids import NIL_UUID
from speech.text.pronunciations import Alphabet
from speech.voices.pronunciations import rows
from speech.voices.pronunciations.wire import (
    PronunciationDeletion,
    PronunciationList,
    read_request,
    served,
)
from speech.voices.views import SpeechView
from speech.voices.voices import voices


class _PronunciationsView(SpeechView):
    """The audit log attributes every change to the key."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method in ("POST", "DELETE"):
            keys = ApiKey.objects.filter(organization_id=self.caller.organization_id)
            key = keys.filter(pk=self.caller.api_key_id or NIL_UUID).first()
            setattr(request._request, trail.ACTOR, f"API key {key}")


class PronunciationsView(_PronunciationsView):
    """All pronunciations of the account; one more of them, or one in the place of an earlier one."""

    http_method_names: list[str] = ["get", "head", "post"]  # noqa: RUF012  # as Django declares it

    def get(self, request: Request) -> Response:
        found = rows.existing(self.caller.organization_id)
        return Response(PronunciationList("list", [served(row) for row in found]))

    def post(self, request: Request) -> Response:
        entry = read_request(request._request.body)
        if entry.alphabet is Alphabet.IPA:
            require_ipa(self.caller.plan)
        row, is_new = rows.put(entry, self.caller.organization_id)
        return Response(served(row), status=201 if is_new else 200)


class PronunciationView(_PronunciationsView):
    """One pronunciation of the account."""

    http_method_names: list[str] = ["delete"]  # noqa: RUF012  # as Django declares it

    def delete(self, request: Request, pronunciation_id: str) -> Response:
        rows.delete(pronunciation_id, self.caller.organization_id)
        return Response(PronunciationDeletion(pronunciation_id, "pronunciation", True))


def require_ipa(plan: str) -> None:
    """Raise ``InvalidField`` when no voice of ``plan`` can be given IPA."""
    if not any(voice.ref.takes_ipa for voice in voices.current().visible_to(plan)):
        raise InvalidField(
            "'alphabet': none of your voices takes IPA; voices of speech servers do not. Send a respelling, "
            'such as "engine x" for nginx.',
            param="alphabet",
        )
