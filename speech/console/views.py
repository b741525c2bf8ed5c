"""The page of voices, the check of a text as it is typed, receipts, and the deletion of clones."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse

from accounts.console import snippets
from accounts.console.base import ConsoleView
from accounts.console.first_request import speech_url
from accounts.console.snippets import KEY_VARIABLE, Snippet
from speech.audio.encoding import AudioFormat
from speech.audio.pcm import SAMPLE_RATE
from speech.audio.wav import MAX_SECONDS, MIN_SECONDS
from speech.console.typed import Typed, read_typed
from speech.console.voice_lines import voice_groups
from speech.console.wording import in_words
from speech.errors import MOST_CLONES, CloneNotFound
from speech.models import VoiceClone
from speech.names import MAX_NAME_LENGTH
from speech.text.tags import LONGEST_PAUSE, MOST_PAUSES, SoundName
from speech.voices.clones import rows
from speech.voices.clones.outbox import outbox
from speech.voices.voices import voices
from speech.wire import FASTEST, LONGEST_INPUT, LONGEST_INSTRUCTIONS, LONGEST_SESSION, SLOWEST
from svc_project.lib import clock
from svc_project.lib.errors import ApiError
from usage.console.requests_page import REQUEST_ID
from usage.models import SpeechRow
from usage.queries.speech_days import characters_of

PAUSES: Final = ("pause", "short pause", "long pause", "pause:1.5s")
"""The tags of pauses that the page offers."""

BOUNDS: Final = {
    "input": LONGEST_INPUT,
    "session": LONGEST_SESSION,
    "instructions": LONGEST_INSTRUCTIONS,
    "slowest": SLOWEST,
    "fastest": FASTEST,
    "clones": MOST_CLONES,
    "name": MAX_NAME_LENGTH,
    "shortest_clip": MIN_SECONDS,
    "longest_clip": MAX_SECONDS,
    "longest_pause": LONGEST_PAUSE,
    "pauses": MOST_PAUSES,
    "sample_rate": SAMPLE_RATE,
}
"""The API's bounds, which the page shows and keeps."""


class VoicesView(ConsoleView):
    """The base of the pages about voices."""

    section = "voices"

    def used_today(self) -> dict[str, int | None]:
        """The characters of today (UTC) in settled requests, and the daily quota."""
        return {
            "used": characters_of(self.organization.pk, clock.now().date()),
            "limit": self.organization.speech_characters_per_day,
        }


class VoicesPage(VoicesView):
    """Lists the voices of the organization, each with a player; ``?voice=`` chooses one to speak a text."""

    def get(self, request: HttpRequest) -> HttpResponse:
        snapshot = voices.current()
        groups = voice_groups(self.organization, snapshot)
        lines = [line for group in groups for line in group.lines]
        wanted = request.GET.get("voice")
        first = next((line for line in lines if line.clone is None), lines[0] if lines else None)
        chosen = next((line for line in lines if line.id == wanted), first)
        return self.page(
            "console/voices.html",
            groups=groups,
            chosen=chosen,
            clones=sum(line.clone is not None for line in lines),
            today=self.used_today(),
            is_approximate=snapshot.clone_backend is None,
            bounds=BOUNDS,
            formats=[each.value for each in AudioFormat],
            pauses=PAUSES,
            sounds=[each.value for each in SoundName],
            variable=KEY_VARIABLE,
        )


class CheckView(VoicesView):
    """Checks a request body, counts its characters and returns it as code; speaks nothing."""

    http_method_names: list[str] = ["post"]  # noqa: RUF012  # as Django declares it

    def post(self, request: HttpRequest) -> HttpResponse:
        problem: dict[str, str] | None = None
        found: tuple[Snippet, ...] = ()
        characters = 0
        try:
            typed = read_typed(request.body)
            characters = typed.characters
            found = _snippets(request, typed)
        except ApiError as error:
            problem = {"param": error.param or "", "message": in_words(error)}
        return JsonResponse(
            {
                "problem": problem,
                "characters": characters,
                "snippets": {each.name: each.code for each in found},
                "today": self.used_today(),
            }
        )


class ReceiptView(VoicesView):
    """What one speech request of the organization was charged and took, in JSON."""

    def get(self, request: HttpRequest, request_id: str) -> HttpResponse:
        row = None
        if REQUEST_ID.fullmatch(request_id):
            row = SpeechRow.objects.filter(
                organization_id=self.organization.pk, request_id=request_id
            ).first()
        if row is None:
            return JsonResponse({}, status=404)
        return JsonResponse({**_receipt(row), "today": self.used_today()})


class DeleteCloneView(VoicesView):
    """Asks, then deletes a clone of the organization."""

    def get(self, request: HttpRequest, voice: str) -> HttpResponse:
        return self.page("console/clone_delete.html", clone=self._clone(voice))

    def post(self, request: HttpRequest, voice: str) -> HttpResponse:
        clone = self._clone(voice)
        try:
            rows.delete(clone.pk, str(self.organization.pk))
        except CloneNotFound:
            # Somebody else deleted it meanwhile.
            raise Http404 from None
        outbox.nudge()
        messages.success(request, f"The clone {clone.name} is deleted.")
        return redirect("console-voices")

    def _clone(self, voice: str) -> VoiceClone:
        clone = rows.find(voice, str(self.organization.pk))
        if clone is None:
            raise Http404
        return clone


def _snippets(request: HttpRequest, typed: Typed) -> tuple[Snippet, ...]:
    base_url = speech_url(request)
    if typed.by_socket:
        return snippets.speech_stream(
            base_url.replace("http", "ws", 1), typed.start, typed.pieces(LONGEST_INPUT)
        )
    return snippets.speech(base_url, typed.body)


def _receipt(row: SpeechRow) -> dict[str, Any]:
    return {
        "characters": row.characters,
        "sentences": row.sentences,
        "audio_ms": row.audio_ms,
        "upstream_ms": row.upstream_ms,
        "outcome": row.outcome,
        "link": reverse("console-request", args=[row.request_id]),
    }
