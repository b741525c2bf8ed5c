"""The page of voices, the check of a text as it is typed, receipts, and the deletion of clones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse

from accounts.console import snippets
from accounts.console.addresses import redirect, reverse
from accounts.console.base import ConsoleView
from accounts.console.first_request import speech_url
from accounts.console.snippets import KEY_VARIABLE, Snippet
from accounts.models import Organization
from core import clock
from core.asgi.json_object import parse_object
from core.errors import ApiError, InvalidField
from speech.audio.encoding import AudioFormat
from speech.audio.pcm import SAMPLE_RATE
from speech.audio.wav import MAX_SECONDS, MIN_SECONDS
from speech.console.labels import VoiceSearch
from speech.console.wording import in_words
from speech.errors import MOST_CLONES, CloneNotFound
from speech.models import Language, VoiceClone
from speech.names import MAX_NAME_LENGTH
from speech.requests.http_request import input_named
from speech.serving import monitoring
from speech.synthesis.script import metered_characters
from speech.text.tags import LONGEST_PAUSE, MOST_PAUSES, SoundName
from speech.voices.clones import rows
from speech.voices.clones.outbox import outbox
from speech.voices.snapshot import GlobalVoice, VoiceSnapshot
from speech.voices.voices import voices
from speech.wire import (
    FASTEST,
    LONGEST_INPUT,
    LONGEST_INSTRUCTIONS,
    LONGEST_SESSION,
    SLOWEST,
    SpeechRequest,
)
from usage.console.requests_page import REQUEST_ID
from usage.models import SpeechRow
from usage.queries.speech import characters_of

_EXAMPLE: Final = '{"voice": "...", "input": "...", "by_socket": false}'


@dataclass(frozen=True, slots=True)
class Typed:
    """A valid request. ``characters`` are those that are metered."""

    body: Mapping[str, Any]
    """The fields of ``POST /v1/audio/speech``, with a ``response_format``."""
    by_socket: bool
    characters: int

    @property
    def start(self) -> dict[str, Any]:
        """The first message of a WebSocket session."""
        others = {name: value for name, value in self.body.items() if name != "input"}
        return {"type": "start", **others}

    def pieces(self, longest: int) -> list[str]:
        """The text in pieces of at most ``longest`` code points."""
        text: str = self.body["input"]
        return [text[at : at + longest] for at in range(0, len(text), longest)]


def read_typed(body: bytes) -> Typed:
    """Parse ``body``: the fields of ``POST /v1/audio/speech``, and ``by_socket``.

    Raises ``InvalidField`` for the first wrong field.
    """
    fields = parse_object(body, _EXAMPLE)
    by_socket = fields.pop("by_socket", False) is True
    if fields.get("response_format") is None:
        fields["response_format"] = AudioFormat.WAV.value
    text = fields.get("input")
    if by_socket and isinstance(text, str):
        if len(text) > LONGEST_SESSION:
            raise InvalidField(
                f"'input' has {len(text)} characters, and a session takes at most "
                f"{LONGEST_SESSION}. Send the rest in another one.",
                param="input",
            )
        # The messages of a session have the same rules as a body, and each a part of the text.
        _check({**fields, "input": text.strip()[:LONGEST_INPUT]})
    else:
        _check(fields)
    with input_named():
        characters = metered_characters(fields["input"])
    return Typed(fields, by_socket, characters)


def _check(fields: Mapping[str, Any]) -> None:
    SpeechRequest.from_body(msgspec.json.encode(fields))


LANGUAGES: Final = {Language.ENGLISH.value: "English", Language.HINDI.value: "Hindi"}
"""Languages by their code, in the order of the page."""

SAMPLES: Final = {
    Language.ENGLISH.value: "The kettle is on, and the first train leaves at ten past nine.",
    Language.HINDI.value: "नमस्ते! आज मौसम बहुत अच्छा है, चलिए टहलने चलते हैं।",
}
"""What ``Listen`` has a voice say, by language."""


@dataclass(frozen=True, slots=True)
class VoiceLine:
    """A voice of the list. ``clone`` is None for a voice of the catalog."""

    id: str
    name: str
    language: str
    is_neural: bool
    takes_speed: bool
    takes_instructions: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    clone: VoiceClone | None = None

    @property
    def sample(self) -> str:
        return SAMPLES[self.language]


@dataclass(frozen=True, slots=True)
class VoiceGroup:
    """The voices under one heading."""

    title: str
    lines: list[VoiceLine]


def voice_groups(organization: Organization, snapshot: VoiceSnapshot) -> list[VoiceGroup]:
    """The organization's clones, then the voices of its plan by language; empty groups left out.

    Raises ``django.db.Error``.
    """
    groups = [
        VoiceGroup(
            "Your clones", [_cloned(row, snapshot) for row in rows.existing(str(organization.pk))]
        )
    ]
    lives = monitoring.speaks_live()
    catalog = [_line(voice, lives=lives) for voice in snapshot.visible_to(organization.plan)]
    groups += [
        VoiceGroup(title, [line for line in catalog if line.language == code])
        for code, title in LANGUAGES.items()
    ]
    return [group for group in groups if group.lines]


def _line(voice: GlobalVoice, *, lives: bool) -> VoiceLine:
    """``lives``: whether the neural engine speaks live, and so the voices that have one there."""
    backend = voice.ref.backend
    return VoiceLine(
        id=voice.ref.id,
        name=voice.ref.id,
        language=voice.ref.language,
        is_neural=(voice.ref.as_neural() if lives else voice.ref).is_neural,
        labels=voice.labels,
        takes_speed=backend is None or bool(backend.speed_field),
        takes_instructions=backend is not None and bool(backend.instructions_field),
    )


def _cloned(row: VoiceClone, snapshot: VoiceSnapshot) -> VoiceLine:
    backend = snapshot.clone_backend
    return VoiceLine(
        id=row.pk,
        name=row.name,
        language=Language.ENGLISH.value,
        is_neural=False,
        takes_speed=backend is None or bool(backend.speed_field),
        takes_instructions=backend is not None and bool(backend.instructions_field),
        clone=row,
    )


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
    """Lists the voices of the organization, each with a player; ``?voice=`` chooses one to speak a text.

    ``VoiceSearch`` says which are shown. The others are in the page too: they can be spoken with.
    """

    def get(self, request: HttpRequest) -> HttpResponse:
        snapshot = voices.current()
        groups = voice_groups(self.organization, snapshot)
        lines = [line for group in groups for line in group.lines]
        search = VoiceSearch(request.GET)
        wanted = search.kept.get("voice")
        first = next((line for line in lines if line.clone is None), lines[0] if lines else None)
        chosen = next((line for line in lines if line.id == wanted), first)
        return self.page(
            "console/voices.html",
            groups=groups,
            search=search,
            found=search.found(lines),
            facets=search.facets(lines),
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
