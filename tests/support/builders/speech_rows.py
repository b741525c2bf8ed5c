"""Builders of voices, speech backends, clones and callers, with defaults for every field."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec

from accounts.keys.principal import Principal, RateLimits, SpeechLimits
from accounts.models import Organization, Plan, Scope
from core.ids import NIL_UUID, uuid7_hex
from speech.engines.espeak.profile import NEUTRAL
from speech.models import SpeechBackend, Voice, VoiceClone
from speech.names import name_key

_numbers = count(1)


def backend(name: str = "", **columns: Any) -> SpeechBackend:
    name = name or f"speech-{next(_numbers)}"
    figures = {"base_url": "http://127.0.0.1:9100/v1", "model": "tts-1"}
    return SpeechBackend.objects.create(name=name, **{**figures, **columns})


def cloning_backend(**columns: Any) -> SpeechBackend:
    """A backend that speaks clones, to which clips are uploaded."""
    return backend(**{"serves_clones": True, "clone_mode": "upload", **columns})


def voice(identifier: str = "ava", **columns: Any) -> Voice:
    return Voice.objects.create(id=identifier, **{"engine_voice": "en-us+f3", **columns})


def hindi_voice(identifier: str = "asha", **columns: Any) -> Voice:
    return voice(identifier, **{"language": "hi", "engine_voice": "hi+f2", **columns})


def organization(plan: Plan = Plan.STANDARD, **columns: Any) -> Organization:
    return Organization.objects.create(
        name=f"org {next(_numbers)}", plan=plan, **{"speech_requests_per_minute": None, **columns}
    )


def clone(owner: Organization, name: str = "", **columns: Any) -> VoiceClone:
    """An existing clone without audio, in the first free slot."""
    name = name or f"clone {next(_numbers)}"
    taken = set(VoiceClone.objects.filter(organization=owner).values_list("slot", flat=True))
    figures: dict[str, Any] = {
        "id": f"voice_{uuid7_hex()}",
        "api_key_id": NIL_UUID,
        "name_key": name_key(name),
        "slot": next(number for number in range(1, 11) if number not in taken),
        "reference_seconds": 5.0,
        "profile": msgspec.json.decode(NEUTRAL.to_json()),
    }
    return VoiceClone.objects.create(organization=owner, name=name, **{**figures, **columns})


def principal(owner: Organization) -> Principal:
    """A caller with a speech key of ``owner``."""
    return Principal(
        organization_id=str(owner.pk),
        api_key_id=str(NIL_UUID),
        scope=Scope.SPEECH,
        plan=owner.plan,
        organization_limits=RateLimits(None, None),
        key_limits=RateLimits(None, None),
        speech_limits=SpeechLimits(None, None),
    )
