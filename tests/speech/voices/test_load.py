"""``load_catalog`` with voices: tables, changes, and messages for mistakes."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from django.core.management import CommandError
from openai.types.audio.speech_create_params import Voice as SdkVoice

from accounts.models import ChangeStamp
from core.catalog_tables import CatalogFileError
from inference.models import ModelEntry
from speech.models import SpeechBackend, Voice
from speech.voices.load import (
    SpeechBackendTable,
    VoiceTable,
    load_voices,
    read_speech_tables,
)
from speech.voices.voices import voices
from svc_project.configuration.documents import stored_catalog
from tests.inference.catalog.conftest import load
from tests.support.cases.catalog_files import Load
from tests.support.live import ROOT

pytestmark = pytest.mark.django_db

__all__ = ["load"]

VOICE = """
[[voices]]
id = "ava"
language = "en"
engine = "espeak"
engine_voice = "en-us+f3"
"""
HINDI = """
[[voices]]
id = "asha"
language = "hi"
engine_voice = "hi+f2"
"""
BACKEND = """
[[speech_backends]]
name = "kokoro"
protocol = "openai"
base_url = "http://127.0.0.1:9100/v1"
model = "kokoro"
delivery = "pcm"
clone_mode = "inline"
serves_clones = true
extra_fields = { stream_format = "audio" }
sounds = { laughs = "<laugh>" }
"""
NEURAL = """
[[voices]]
id = "mia"
engine = "kokoro"
engine_voice = "af_bella"
"""
FILE = VOICE + HINDI + BACKEND + NEURAL


def test_a_file_creates_voices_and_backends_and_reports_each(load: Load) -> None:
    assert load(FILE) == [
        "created speech backend kokoro",
        "created voice ava",
        "created voice asha",
        "created voice mia",
    ]

    backend = SpeechBackend.objects.get()
    assert (backend.delivery, backend.clone_mode, backend.serves_clones) == ("pcm", "inline", True)
    assert backend.extra_fields == {"stream_format": "audio"}
    assert backend.sounds == {"laughs": "<laugh>"}
    assert Voice.objects.get(pk="ava").backend is None
    assert Voice.objects.get(pk="asha").language == "hi"
    mia = Voice.objects.get(pk="mia")
    assert (mia.backend, mia.engine_voice) == (backend, "af_bella")
    assert ChangeStamp.objects.get(subject="voices").version > 0


def test_loading_again_changes_nothing(load: Load) -> None:
    load(FILE)

    assert load(FILE) == ["nothing to change"]


def test_differences_are_applied_and_reported(load: Load) -> None:
    load(FILE)

    changes = load(
        FILE.replace('"en-us+f3"', '"en-us+f4"\nenabled = false').replace(
            'engine = "kokoro"\nengine_voice = "af_bella"', 'engine_voice = "en-us"'
        )
    )

    assert changes == [
        "voice ava: engine_voice en-us+f3 -> en-us+f4",
        "voice ava: enabled True -> False",
        "voice mia: engine kokoro -> None",
        "voice mia: engine_voice af_bella -> en-us",
    ]


def test_rows_that_the_file_does_not_name_are_kept(load: Load) -> None:
    load(FILE)
    load(HINDI)

    assert Voice.objects.filter(enabled=True).count() == 3


def test_clones_move_from_one_backend_to_another_in_one_load(load: Load) -> None:
    load(BACKEND)
    other = BACKEND.replace('"kokoro"', '"chatterbox"')

    load(other + BACKEND.replace("serves_clones = true", "serves_clones = false"))

    assert SpeechBackend.objects.get(serves_clones=True).name == "chatterbox"


SHARED = (
    BACKEND
    + BACKEND.replace('"kokoro"', '"spare"').replace("serves_clones = true", "")
    + """
[[voices]]
id = "ava"
engine = "kokoro"
engine_voice = "af_heart"
weight = 300
servers = [{ name = "spare", engine_voice = "heart", weight = 50 }]
"""
)


def test_a_voice_is_on_several_servers_and_the_stored_catalog_says_so(load: Load) -> None:
    assert load(SHARED)[-2:] == ["created voice ava", "voice ava: also on spare"]
    assert load(SHARED) == ["nothing to change"]
    [shown] = stored_catalog()["voices"]
    assert shown["weight"] == 300
    assert shown["servers"] == [{"name": "spare", "engine_voice": "heart", "weight": 50}]

    assert load(SHARED.replace("weight = 50", "weight = 60")) == [
        "voice ava on spare: weight 50 -> 60"
    ]
    first = SHARED.replace('engine = "kokoro"', 'engine = "spare"')
    assert load(re.sub("servers = .*", "", first)) == [
        "voice ava: no longer on spare",
        "voice ava: engine kokoro -> spare",
    ]


OF_VOICE, OF_SOUND, OF_BACKEND = "voices[0].", "voices[0].engine_voice: ", "speech_backends[0]"
MISTAKES = {
    "unknown engine voice": (VOICE, "+f3", "+f99", f"{OF_SOUND}The embedded engine has no voice 'en-us+f99'."),
    "hostile engine voice": (VOICE, "en-us+f3", "../../etc/passwd", f"{OF_SOUND}The embedded engine has no voice"),
    "wrong language": (HINDI, '"hi+f2"', '"en-us"', f"{OF_SOUND}en-us speaks en, not hi."),
    "unknown language": (VOICE, '"en"', '"fr"', f"{OF_VOICE}language: "),
    "unknown engine": (NEURAL, "kokoro", "piper", f"{OF_VOICE}engine: There is no speech backend piper."),
    "unknown neural voice": (NEURAL, "af_bella", "af_nobody", f"{OF_SOUND}The neural engine has no voice 'af_nobody'."),
    "neural voice of another language": (NEURAL, "af_bella", "hf_beta", f"{OF_SOUND}hf_beta speaks hi, not en."),
    "bad id": (VOICE, '"ava"', '"a va"', f"{OF_VOICE}id: Use at most 80"),
    "id twice": (VOICE + VOICE, "", "", "voices[1].id: ava is there twice."),
    "no engine voice": ('[[voices]]\nid = "a"\n', "", "", f"{OF_SOUND}This key is required."),
    "blank engine voice": (BACKEND + NEURAL, "af_bella", "", f"{OF_SOUND}This field cannot be blank."),
    "unknown key": (VOICE + "colour = 1\n", "", "", f"{OF_VOICE}colour: There is no such key here."),
    "wrong type": (VOICE + "enabled = 1\n", "", "", f"{OF_VOICE}enabled: Expected bool, got int."),
    "unknown protocol": (BACKEND, '"openai"', '"grpc"', f"{OF_BACKEND}.protocol: "),
    "bad address": (BACKEND, "http://127", "ftp://127", f"{OF_BACKEND}.base_url: Start the address with http://"),
    "unknown tag": (BACKEND, "laughs =", "burps =", f"{OF_BACKEND}.sounds: There is no audio tag 'burps'."),
    "a value that JSON lacks": (BACKEND, '"audio"', "nan", f"{OF_BACKEND}.extra_fields.stream_format: Give a finite number."),
    "clones without a mode": (BACKEND, '"inline"', '"none"', f"{OF_BACKEND}: To serve clones, choose how it is given the clip."),
    "two that serve clones": (BACKEND + BACKEND.replace('"kokoro"', '"other"'), "", "", "speech_backends[1]: Another backend serves the clones already."),
    "the embedded engine's name": (BACKEND, 'name = "kokoro"', 'name = "espeak"', f"{OF_BACKEND}.name: espeak is the embedded engine's name."),
    "name twice": (BACKEND + BACKEND, "", "", "speech_backends[1].name: kokoro is there twice."),
    "no model": (BACKEND, 'model = "kokoro"\n', "", f"{OF_BACKEND}.model: This key is required."),
    "unknown server": (SHARED, 'name = "spare", e', 'name = "none", e', f"{OF_VOICE}servers[0].name: There is no speech backend none."),
    "the same server": (SHARED, 'name = "spare", e', 'name = "kokoro", e', f"{OF_VOICE}servers[0].name: It is the voice's backend already."),
    "another text": (SHARED, 'name = "spare"\n', 'name = "spare"\nnormalizes_text = true\n', f"{OF_VOICE}servers[0].name: Its normalizes_text must be that of kokoro"),
    "no weight": (SHARED, "weight = 50", "weight = 0", f"{OF_VOICE}servers[0].weight: "),
    "servers of an embedded voice": (SHARED, 'engine = "kokoro"\nengine_voice = "af_heart"', 'engine_voice = "en-us"', "voices[0].servers[0]: A voice of an embedded engine has no further servers."),
    "no concurrency": (BACKEND + "max_concurrency = 0\n", "", "", f"{OF_BACKEND}.max_concurrency: "),
}  # fmt: skip
"""A file, what is replaced in it and by what, and the beginning of the message."""


@pytest.mark.parametrize(("content", "old", "new", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_reported_with_table_and_key(
    load: Load, content: str, old: str, new: str, told: str
) -> None:
    with pytest.raises(CommandError) as refused:
        load(content.replace(old, new) if old else content)

    assert str(refused.value).startswith(f"catalog.toml: {told}")
    assert not Voice.objects.exists()
    assert not SpeechBackend.objects.exists()


def test_a_mistake_in_a_voice_rejects_the_models_too(load: Load) -> None:
    models = (ROOT / "tests/catalog.toml").read_text().replace("PORT", "9000")
    stamps = list(ChangeStamp.objects.values())

    with pytest.raises(CommandError, match=r"voices\[\d+\].engine: There is no speech backend"):
        load(models + NEURAL.replace("kokoro", "piper"))

    assert not ModelEntry.objects.exists()
    assert list(ChangeStamp.objects.values()) == stamps


@pytest.mark.parametrize("catalog", ["deploy/demo_catalog.toml", "tests/catalog.toml"])
def test_the_catalogs_in_the_repository_have_voices_of_both_languages(
    load: Load, catalog: str
) -> None:
    load((ROOT / catalog).read_text().replace("PORT", "9000"))

    languages = list(Voice.objects.values_list("language", flat=True))
    assert languages.count("en") >= 4
    assert languages.count("hi") == 4


def test_the_demo_catalog_has_every_voice_that_the_sdk_of_openai_names(load: Load) -> None:
    named = {name for kind in get_args(SdkVoice) for name in get_args(kind)}
    assert "alloy" in named

    load((ROOT / "deploy/demo_catalog.toml").read_text())

    voices = Voice.objects.filter(pk__in=named)
    assert {voice.pk for voice in voices} == named
    assert len({voice.engine_voice for voice in voices}) == len(named)


@pytest.mark.parametrize(
    ("table", "heading"),
    [(VoiceTable, "[[voices]]"), (SpeechBackendTable, "[[speech_backends]]")],
)
def test_the_guide_describes_every_key_and_no_other(table: type, heading: str) -> None:
    guide = (ROOT / "docs/operate/catalog.md").read_text(encoding="utf-8")
    section = guide.split(f"### `{heading}`")[1].split("\n#")[0]
    described = {
        name
        for row in re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    }

    assert described == set(table.__struct_fields__)  # type: ignore[attr-defined]  # msgspec's


def test_a_file_without_labels_leaves_those_of_the_admin(db: None) -> None:
    voice = {"id": "ava", "engine_voice": "en-us+f3"}
    load_voices(read_speech_tables([{**voice, "gender": "female", "style": "warm"}], []))
    Voice.objects.update(accent="American")

    assert load_voices(read_speech_tables([voice], [])) == []
    assert load_voices(read_speech_tables([{**voice, "style": ""}], [])) == [
        "voice ava: style warm -> "
    ]
    with pytest.raises(CatalogFileError, match="gender"):
        load_voices(read_speech_tables([{**voice, "gender": "loud"}], []))

    row = Voice.objects.get()
    assert (row.gender, row.accent, row.style) == ("female", "American", "")
    assert voices.current().voices["ava"].labels == {"gender": "female", "accent": "American"}
