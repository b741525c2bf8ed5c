"""GET /v1/models and DELETE /v1/voices/{id}, and Django's own errors in this surface's shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import require
from accounts.models import Scope
from speech.clones import registry
from speech.clones.outbox import outbox
from speech.errors import speech_error_body
from speech.voices import voices
from svc_project.lib.errors import ApiError, InternalError, NotFound
from svc_project.lib.views import ApiView, api_error, error_response, refused_by_django

SCOPES = frozenset({Scope.SPEECH})


class VoiceEntry(msgspec.Struct, frozen=True):
    """The speech contract's Model entry."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class VoiceList(msgspec.Struct, frozen=True):
    """The list envelope."""

    object: Literal["list"]
    data: list[VoiceEntry]


class Deletion(msgspec.Struct, frozen=True):
    """The speech contract's Deletion result."""

    id: str
    object: Literal["voice"]
    deleted: Literal[True]


class SpeechView(ApiView):
    """Called with a live speech key."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.caller = require(request, scopes=SCOPES, session=False)

    def get_exception_handler(self) -> Callable[..., HttpResponse]:
        return _render_exception


class VoiceListView(SpeechView):
    """The global voices that the account's plan has, by id, then its clones, the oldest first."""

    http_method_names: list[str] = ["get", "head"]  # noqa: RUF012  # as Django declares it

    def get(self, request: Request) -> Response:
        entries = [
            VoiceEntry(voice.ref.id, "model", voice.created, settings.SVC_BRAND)
            for voice in voices.current().visible_to(self.caller.plan)
        ]
        entries += [
            VoiceEntry(clone.pk, "model", int(clone.created_at.timestamp()), "user")
            for clone in registry.existing(self.caller.organization_id)
        ]
        return Response(VoiceList("list", entries))


class VoiceView(SpeechView):
    """One clone of the caller; global voices cannot be deleted."""

    http_method_names: list[str] = ["delete"]  # noqa: RUF012  # as Django declares it

    def delete(self, request: Request, voice: str) -> Response:
        registry.delete(voice, self.caller.organization_id)
        outbox.nudge()
        return Response(Deletion(voice, "voice", True))


def _render_exception(exception: Exception, context: Mapping[str, Any]) -> HttpResponse:
    return _error_response(api_error(exception, context))


def _error_response(error: ApiError) -> HttpResponse:
    return error_response(error, speech_error_body)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """``handler404``."""
    return _error_response(NotFound())


def server_error(request: HttpRequest) -> HttpResponse:
    """``handler500``."""
    return _error_response(InternalError())


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """``handler400``."""
    return _error_response(refused_by_django())
