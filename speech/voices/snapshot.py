"""The snapshot of voices for the hot path: frozen, complete, built by three queries."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.conf import settings

from accounts.models import Plan
from core import variables
from speech.engines import StyleMix, embedded
from speech.engines.espeak.profile import CloneProfile
from speech.engines.http.backend import DEFAULT_WEIGHT, BackendRef, ServerRef
from speech.models import LABELS, Language, SpeechBackend, Voice, VoiceServer
from speech.names import name_key

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CloneRef:
    """A clone at the beginning of a sentence; ``mix`` is None until the neural engine can speak it."""

    id: str
    organization_id: str
    profile: CloneProfile | None
    mix: StyleMix | None = None


@dataclass(frozen=True, slots=True)
class VoiceRef:
    """A voice that the caller may use: a global voice, or a clone of its organization.

    ``backend`` is None for an embedded engine, which ``embedded_engine`` names; ``clone`` is None
    for a global voice. ``servers`` are all that speak it, ``backend``, which the ledger names, first; empty
    for ``backend`` alone.
    """

    id: str
    language: str
    engine_voice: str
    backend: BackendRef | None
    clone: CloneRef | None = None
    embedded_engine: str = embedded.ESPEAK
    neural_voice: str = ""
    """The neural engine's voice that speaks it where that engine can; empty: none."""
    servers: tuple[ServerRef, ...] = ()

    def as_neural(self) -> VoiceRef:
        """The voice as the neural engine speaks it; itself without a voice there."""
        if not self.neural_voice:
            return self
        return replace(
            self, engine_voice=self.neural_voice, embedded_engine=embedded.KOKORO, neural_voice=""
        )

    @property
    def is_neural(self) -> bool:
        """Whether the embedded neural engine speaks it."""
        return self.backend is None and self.embedded_engine == embedded.KOKORO

    @property
    def has_word_times(self) -> bool:
        """Whether its engine knows when it speaks each word; of speech servers all must say it."""
        if self.backend is None:
            return True
        servers = [server.backend for server in self.servers] or [self.backend]
        return all(backend.has_word_times for backend in servers)

    @property
    def takes_ipa(self) -> bool:
        """Whether its engine can be given the sounds of a word; the embedded ones can."""
        return self.backend is None

    @property
    def engine(self) -> str:
        """The name of the engine or backend in the catalog and the ledger."""
        return self.embedded_engine if self.backend is None else self.backend.name


@dataclass(frozen=True, slots=True)
class GlobalVoice:
    """A voice of the catalog that can speak now."""

    ref: VoiceRef
    created: int
    """When it was added, in seconds since the epoch."""
    name_key: str
    """The key that no clone's name may have where the voice is visible."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """How it sounds, by the name of the label; without those that nobody has said."""

    def is_visible_to(self, plan: str) -> bool:
        """Hindi voices are for enterprise accounts (speech contract, What the service does)."""
        return self.ref.language != Language.HINDI or plan == Plan.ENTERPRISE


@dataclass(frozen=True, slots=True)
class VoiceSnapshot:
    """All global voices that can speak, by id, and the backend of the clones.

    ``clone_backend`` is None when the embedded engines speak the clones; ``clone_styles`` are the neural
    engine's voices that may be mixed into clones, none where espeak-ng alone speaks them.
    """

    voices: Mapping[str, GlobalVoice] = field(default_factory=dict)
    clone_backend: BackendRef | None = None
    clone_styles: frozenset[str] = frozenset()
    wants_neural: bool = False
    """Whether a voice of the catalog is the neural engine's or has one there, installed or not."""

    def speaks(self, language: str) -> bool:
        """Whether there is a voice of ``language``."""
        return any(voice.ref.language == language for voice in self.voices.values())

    def visible_to(self, plan: str) -> list[GlobalVoice]:
        """The voices that an account of ``plan`` may list and use, sorted by id."""
        return [voice for voice in self.voices.values() if voice.is_visible_to(plan)]


def read_snapshot() -> VoiceSnapshot:
    """Read voices and backends from the database in three queries, two where no voice has a backend.

    Voices are read first: what one needs was there when it was written, and so is read after it.

    Left out are voices that are switched off, whose backends are all switched off, or whose embedded
    engine cannot run here.
    """
    neural_problem = embedded.problem(embedded.KOKORO, settings.SVC_NEURAL_DIR)
    enabled = list(Voice.objects.filter(enabled=True).order_by("pk"))
    has_servers = any(each.backend_id is not None for each in enabled)
    further: dict[str, list[VoiceServer]] = {}
    for server in VoiceServer.objects.order_by("pk") if has_servers else ():
        further.setdefault(server.voice_id, []).append(server)
    rows = list(SpeechBackend.objects.filter(enabled=True))
    backends = {row.pk: backend_ref(row) for row in rows}
    voices = {}
    styles: set[str] = set()
    for voice in enabled:
        servers = _servers(voice, further.get(voice.pk, []), backends)
        if servers or voice.backend_id is None:
            voices[voice.pk] = _global_voice(voice, servers)
        if voice.mixed_into_clones and voice.pk in voices:
            spoken = voices[voice.pk].ref.as_neural()
            styles |= {spoken.engine_voice} if spoken.is_neural else set()
    wants_neural = any(each.ref.as_neural().is_neural for each in voices.values())
    if neural_problem is not None and _leave_out_neural(voices):
        log.error("voices of the neural engine are not served: %s", neural_problem)
    serving = next((backends[row.pk] for row in rows if row.serves_clones), None)
    may_mix = serving is None and neural_problem is None
    return VoiceSnapshot(
        voices, serving, frozenset(styles) if may_mix else frozenset(), wants_neural
    )


def _leave_out_neural(voices: dict[str, GlobalVoice]) -> bool:
    """Remove the neural engine's voices from ``voices``; return whether there were any."""
    unserved = [name for name, voice in voices.items() if voice.ref.is_neural]
    for name in unserved:
        del voices[name]
    return bool(unserved)


def backend_ref(row: SpeechBackend) -> BackendRef:
    """A backend with its key, and with the default timeouts where its row has none."""
    if found := variables.problem(row.api_key_env):
        log.warning("speech backend %s: %s", row.name, found)
    return BackendRef(
        id=str(row.pk),
        name=row.name,
        base_url=row.base_url.rstrip("/"),
        api_key=variables.secret_of(row.api_key_env),
        model=row.model,
        delivery=row.delivery,
        sample_rate=row.sample_rate,
        word_times=row.word_times,
        speech_path=row.speech_path,
        text_field=row.text_field,
        voice_field=row.voice_field,
        format_field=row.format_field,
        language_field=row.language_field,
        speed_field=row.speed_field,
        instructions_field=row.instructions_field,
        normalizes_text=row.normalizes_text,
        extra_fields=row.extra_fields,
        sounds=row.sounds,
        clone_mode=row.clone_mode,
        clone_field=row.clone_field,
        clone_as_data_url=row.clone_as_data_url,
        upload_path=row.upload_path,
        upload_name_field=row.upload_name_field,
        upload_extra_fields=row.upload_extra_fields,
        max_concurrency=row.max_concurrency,
        first_byte_seconds=row.first_byte_seconds or settings.SVC_SPEECH_FIRST_BYTE_SECONDS,
        total_seconds=row.total_seconds or settings.SVC_SPEECH_TOTAL_SECONDS,
    )


def _servers(
    row: Voice, further: Sequence[VoiceServer], backends: Mapping[uuid.UUID, BackendRef]
) -> tuple[ServerRef, ...]:
    """The servers of a voice that are switched on and take the same text as the first of them."""
    if row.backend_id is None:
        return ()
    named = [
        (row.backend_id, row.engine_voice, row.weight or DEFAULT_WEIGHT),
        *((one.backend_id, one.engine_voice or row.engine_voice, one.weight) for one in further),
    ]
    found: list[ServerRef] = []
    for backend_id, engine_voice, weight in named:
        backend = backends.get(backend_id)
        if backend is None:
            continue
        if found and not found[0].backend.takes_same_text(backend):
            log.error(
                "voice %s: %s does not speak it, because it takes another text", row, backend.name
            )
            continue
        found.append(ServerRef(backend, engine_voice, weight))
    return tuple(found)


def _global_voice(row: Voice, servers: tuple[ServerRef, ...]) -> GlobalVoice:
    return GlobalVoice(
        ref=VoiceRef(
            row.pk,
            row.language,
            servers[0].engine_voice if servers else row.engine_voice,
            servers[0].backend if servers else None,
            embedded_engine=row.embedded_engine,
            neural_voice=row.neural_voice,
            servers=servers if len(servers) > 1 else (),
        ),
        created=int(row.created_at.timestamp()),
        name_key=name_key(row.pk),
        labels={name: label for name in LABELS if (label := getattr(row, name))},
    )
