"""``manage.py reseal_clones``: after it, the newest of SVC_CLONE_KEYS opens every clip alone."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from core.sealing import Cipher
from speech.models import CloneAudio, VoiceClone
from tests.support.builders import speech_rows

pytestmark = pytest.mark.django_db
CLIP = b"RIFF" * 400


def clone_sealed_with(key: str) -> VoiceClone:
    clone: VoiceClone = speech_rows.clone(speech_rows.organization())
    CloneAudio.objects.create(clone=clone, sealed=Cipher([key]).seal(CLIP))
    return clone


def opened(clone: VoiceClone, key: str) -> bytes:
    return Cipher([key]).open(bytes(CloneAudio.objects.get(clone=clone).sealed))


def test_the_old_key_can_be_dropped_afterwards(settings: Any) -> None:
    settings.SVC_CLONE_KEYS = ["new", "old"]
    older, newer = clone_sealed_with("old"), clone_sealed_with("new")
    kept = bytes(CloneAudio.objects.get(clone=newer).sealed)

    out = StringIO()
    call_command("reseal_clones", stdout=out)

    assert opened(older, "new") == opened(newer, "new") == CLIP
    assert bytes(CloneAudio.objects.get(clone=newer).sealed) == kept
    assert out.getvalue() == "1 clip(s) encrypted anew, 1 had the newest key already\n"


def test_a_clip_of_a_lost_key_is_named_and_the_others_are_encrypted(settings: Any) -> None:
    settings.SVC_CLONE_KEYS = ["new", "old"]
    lost, older = clone_sealed_with("lost"), clone_sealed_with("old")

    with pytest.raises(CommandError, match=lost.pk):
        call_command("reseal_clones", stdout=StringIO())

    assert opened(older, "new") == CLIP
    assert opened(lost, "lost") == CLIP
