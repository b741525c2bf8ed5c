"""The lists of voices, in the two shapes that clients read; ``DELETE /v1/voices/{id}``; and
Django's own errors in this surface's shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.keys.authentication import require
from accounts.models import Scope
from core.api.unknown_paths import unknown_path
from core.api.views import (
    ApiView,
    api_error,
    error_response,
    internal_error,
    refused_by_django,
)
from core.errors import ApiError, NotFound
from speech.errors import UnknownVoice, speech_error_body
from speech.models import Language, VoiceClone
from speech.voices.clones import rows
from speech.voices.clones.outbox import outbox
from speech.voices.snapshot import GlobalVoice
from speech.voices.voices import voices

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


class NamedVoice(msgspec.Struct, frozen=True):
    """A voice in the lists of speech clients; ``name`` is the display name."""

    id: str
    name: str
    language: str


class NamedVoices(msgspec.Struct, frozen=True):
    """The body of ``/audio/voices``, for Open WebUI and others."""

    voices: list[NamedVoice]


class NamedModel(msgspec.Struct, frozen=True):
    """A model in the lists of speech clients."""

    id: str
    name: str


class NamedModels(msgspec.Struct, frozen=True):
    """The body of ``/audio/models``, for Open WebUI and others."""

    models: list[NamedModel]


class Deletion(msgspec.Struct, frozen=True):
    """The speech contract's Deletion result."""

    id: str
    object: Literal["voice"]
    deleted: Literal[True]


class SpeechView(ApiView):
    """A view that requires an active key of the speech scope."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.caller = require(request, scopes=SCOPES, session=False)

    def get_exception_handler(self) -> Callable[..., HttpResponse]:
        return _render_exception


class ReadingView(SpeechView):
    http_method_names: list[str] = ["get", "head"]  # noqa: RUF012  # as Django declares it

    def global_voices(self) -> list[GlobalVoice]:
        """The global voices of the account's plan, sorted by id."""
        return voices.current().visible_to(self.caller.plan)

    def clones(self) -> list[VoiceClone]:
        """The clones of the account, oldest first."""
        return rows.existing(self.caller.organization_id)


class VoiceListView(ReadingView):
    """The global voices, then the clones."""

    def get(self, request: Request) -> Response:
        entries = [_global_entry(voice) for voice in self.global_voices()]
        entries += [_clone_entry(clone) for clone in self.clones()]
        return Response(VoiceList("list", entries))


class VoiceEntryView(ReadingView):
    """One entry of the list; 404 for any other voice."""

    def get(self, request: Request, voice: str) -> Response:
        for known in self.global_voices():
            if known.ref.id == voice:
                return Response(_global_entry(known))
        clone = rows.find(voice, self.caller.organization_id)
        if clone is None:
            raise NotFound(UnknownVoice.default_message)
        return Response(_clone_entry(clone))


class NamedVoicesView(ReadingView):
    """The same voices for clients that read ``/audio/voices``; a clone has its display name."""

    def get(self, request: Request) -> Response:
        entries = [
            NamedVoice(voice.ref.id, voice.ref.id, voice.ref.language)
            for voice in self.global_voices()
        ]
        entries += [
            NamedVoice(clone.pk, clone.name, Language.ENGLISH.value) for clone in self.clones()
        ]
        return Response(NamedVoices(entries))


class NamedModelsView(ReadingView):
    """One entry, for clients that require a choice of models: ``model`` is ignored."""

    def get(self, request: Request) -> Response:
        return Response(NamedModels([NamedModel(settings.SVC_BRAND, settings.SVC_BRAND)]))


class VoiceView(SpeechView):
    """One clone of the caller; global voices cannot be deleted."""

    http_method_names: list[str] = ["delete"]  # noqa: RUF012  # as Django declares it

    def delete(self, request: Request, voice: str) -> Response:
        rows.delete(voice, self.caller.organization_id)
        outbox.nudge()
        return Response(Deletion(voice, "voice", True))


def _global_entry(voice: GlobalVoice) -> VoiceEntry:
    return VoiceEntry(voice.ref.id, "model", voice.created, settings.SVC_BRAND)


def _clone_entry(clone: VoiceClone) -> VoiceEntry:
    return VoiceEntry(clone.pk, "model", int(clone.created_at.timestamp()), "user")


def _render_exception(exception: Exception, context: Mapping[str, Any]) -> HttpResponse:
    return _error_response(api_error(exception, context))


def _error_response(error: ApiError) -> HttpResponse:
    return error_response(error, speech_error_body)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """``handler404``."""
    return _error_response(unknown_path(request.path_info, on_speech=True))


def server_error(request: HttpRequest) -> HttpResponse:
    """``handler500``."""
    return _error_response(internal_error())


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """``handler400``."""
    return _error_response(refused_by_django())
