"""The voices of an organization as the console lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from accounts.models import Organization
from speech.models import Language, VoiceClone
from speech.voices.clones import rows
from speech.voices.snapshot import VoiceRef, VoiceSnapshot

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
    catalog = [_line(voice.ref) for voice in snapshot.visible_to(organization.plan)]
    groups += [
        VoiceGroup(title, [line for line in catalog if line.language == code])
        for code, title in LANGUAGES.items()
    ]
    return [group for group in groups if group.lines]


def _line(voice: VoiceRef) -> VoiceLine:
    backend = voice.backend
    return VoiceLine(
        id=voice.id,
        name=voice.id,
        language=voice.language,
        is_neural=voice.is_neural,
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
