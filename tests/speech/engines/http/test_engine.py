"""Speaking through a speech server: the requests, and the sound of each delivery."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from speech.audio.pcm import duration
from speech.engines import EngineError, EngineProtocolError
from speech.engines.http.engine import FORMAT_OF_DELIVERY
from speech.models import Delivery
from tests.support.speech.listening import energy_between, loudness, sentence_heard
from tests.support.speech.speech_server import (
    PROFILES,
    SpeechServer,
    described,
    heard,
    running_speech_server,
    said,
    speaking,
)

TEXT = "The morning train was late again."
WORDS = "the morning train was late again"
OTHERS = ["please bring the yellow cups", "could you repeat the number"]
BANDS = [(80, 500), (500, 1500), (1500, 4000), (4000, 10_000)]
CHUNKED = {"stream_format": "audio"}


@pytest.fixture(scope="module")
def server() -> Iterator[SpeechServer]:
    with running_speech_server() as running:
        yield running


async def spoken(server: SpeechServer, text: str = TEXT, **changes: Any) -> bytes:
    async with speaking(described(server.url, **changes)) as engine:
        return await heard(engine, said(text))


def assert_alike(pcm: bytes, reference: bytes, *, seconds: float = 0.01) -> None:
    """The same length, and the same share of energy in each band."""
    assert duration(pcm) == pytest.approx(duration(reference), abs=seconds)
    for low, high in BANDS:
        share = energy_between(reference, low, high)
        assert energy_between(pcm, low, high) == pytest.approx(share, abs=0.03), (low, high)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_sentence_is_heard_in_each_profile(server: SpeechServer, profile: str) -> None:
    pcm = await spoken(server, profile=profile)

    assert sentence_heard(pcm, [WORDS, *OTHERS]) == WORDS
    assert pcm == await spoken(server)


@pytest.mark.parametrize("extra", [{}, CHUNKED], ids=["whole", "chunked"])
@pytest.mark.parametrize("sizes", ["exact", "zero", "max", "double", "half"])
async def test_a_wav_file_is_decoded_completely_with_any_sizes_in_its_header(
    server: SpeechServer, sizes: str, extra: dict[str, Any]
) -> None:
    model = f"tts [[sim sizes={sizes} piece=777]]"

    assert await spoken(server, model=model, extra_fields=extra) == await spoken(server)


@pytest.mark.parametrize("sizes", ["exact", "zero", "max"])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("rate", [22_050, 44_100, 48_000, 96_000])
async def test_any_rate_and_stereo_become_the_same_sound(
    server: SpeechServer, rate: int, channels: int, sizes: str
) -> None:
    reference = await spoken(server)
    model = f"tts [[sim rate={rate} channels={channels} sizes={sizes}]]"
    pcm = await spoken(server, model=model)

    assert_alike(pcm, reference)
    mean = 0.75 if channels == 2 else 1.0
    assert loudness(pcm) == pytest.approx(mean * loudness(reference), rel=0.02)


async def test_a_low_rate_keeps_its_frequencies(server: SpeechServer) -> None:
    pcm = await spoken(server, model="tts [[sim rate=8000]]")

    assert duration(pcm) == pytest.approx(duration(await spoken(server)), abs=0.01)
    assert energy_between(pcm, 4200, 12_000) < 0.001
    assert sentence_heard(pcm, [WORDS, *OTHERS]) == WORDS


@pytest.mark.parametrize("file_format", ["flac", "mp3", "opus"])
@pytest.mark.parametrize("extra", [{}, CHUNKED], ids=["whole", "chunked"])
async def test_a_compressed_file_is_recognised_by_its_first_bytes(
    server: SpeechServer, file_format: str, extra: dict[str, Any]
) -> None:
    fields = {"response_format": file_format, **extra}
    pcm = await spoken(server, format_field="", extra_fields=fields)

    assert_alike(pcm, await spoken(server), seconds=0.06)


@pytest.mark.parametrize("profile", ["pcm", "sse"])
@pytest.mark.parametrize("rate", [16_000, 44_100])
async def test_raw_samples_have_the_configured_rate(
    server: SpeechServer, profile: str, rate: int
) -> None:
    pcm = await spoken(
        server, profile=profile, sample_rate=rate, model=f"tts [[sim rate={rate} piece=1001]]"
    )

    assert_alike(pcm, await spoken(server))


@pytest.mark.parametrize(
    ("profile", "where"),
    [("pcm", "type_rate"), ("pcm", "header_rate"), ("sse", "header_rate")],
)
async def test_a_rate_in_the_answer_overrides_the_configured_rate(
    server: SpeechServer, profile: str, where: str
) -> None:
    model = f"tts [[sim rate=22050 {where}=22050 piece=1001]]"

    pcm = await spoken(server, profile=profile, model=model)

    assert_alike(pcm, await spoken(server))


async def test_the_rate_in_a_files_own_header_is_used(server: SpeechServer) -> None:
    model = "tts [[sim rate=22050 header_rate=48000 type_rate=16000]]"

    assert_alike(await spoken(server, model=model), await spoken(server))


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("tts [[sim type_rate=24000 header_rate=22050]]", "names two sample rates: 24000 in"),
        ("tts [[sim header_rate=1000000]]", "Unsupported sample rate"),
        ("tts [[sim type_rate=4000]]", "Unsupported sample rate"),
    ],
)
async def test_an_invalid_rate_is_refused_and_logged(
    server: SpeechServer, caplog: pytest.LogCaptureFixture, model: str, told: str
) -> None:
    with pytest.raises(EngineProtocolError):
        await spoken(server, profile="pcm", model=model)

    assert told in caplog.text
    assert "speech backend tts-1" in caplog.text


@pytest.mark.parametrize("sizes", ["exact", "zero"])
async def test_a_flac_file_with_or_without_a_length_is_decoded_completely(
    server: SpeechServer, sizes: str
) -> None:
    fields = {"response_format": "flac"}
    model = f"tts [[sim sizes={sizes} piece=333]]"

    pcm = await spoken(server, format_field="", extra_fields=fields, model=model)

    assert pcm == await spoken(server)


@pytest.mark.parametrize("piece", [1, 7, 4095])
@pytest.mark.parametrize("profile", PROFILES)
async def test_pieces_of_any_size_make_the_same_sound(
    server: SpeechServer, profile: str, piece: int
) -> None:
    text = "Hi." if piece == 1 else TEXT
    whole = await spoken(server, text, profile=profile)

    assert await spoken(server, text, profile=profile, model=f"t [[sim piece={piece}]]") == whole


@pytest.mark.parametrize(
    "asked_for",
    [
        {"extra_fields": {"stream_format": "sse", "response_format": "wav"}},
        {"extra_fields": {"response_format": "wav"}},
        {"extra_fields": {"stream_format": "sse", "response_format": "pcm"}},
    ],
    ids=["events of a wav file", "a wav file", "events"],
)
async def test_the_answers_media_type_overrides_the_configured_delivery(
    server: SpeechServer, asked_for: dict[str, Any]
) -> None:
    # The description says raw samples of a wrong rate.
    pcm = await spoken(server, profile="pcm", format_field="", **asked_for)

    assert pcm == await spoken(server)


async def test_another_voice_sounds_different(server: SpeechServer) -> None:
    async with speaking(described(server.url)) as engine:
        ava, noah = [await heard(engine, said(TEXT, engine_voice=name)) for name in ("ava", "noah")]

    assert ava != noah


async def test_exactly_the_configured_fields_are_sent(server: SpeechServer) -> None:
    backend = described(
        server.url,
        model="kokoro",
        language_field="lang",
        format_field="response_format",
        extra_fields={"stream": False, "model": "overridden", "voice": "nobody", "seed": 7},
    )
    async with speaking(backend) as engine:
        await heard(engine, said("Fields, please.", engine_voice="af_heart"))

    (entry,) = server.requests_with("Fields, please.")
    assert entry["body"] == {
        "model": "kokoro",
        "voice": "af_heart",
        "input": "Fields, please.",
        "response_format": "wav",
        "lang": "en",
        "stream": False,
        "seed": 7,
    }
    assert entry["received_headers"] == [
        "accept", "accept-encoding", "content-length", "content-type", "host", "user-agent",
    ]  # fmt: skip


def test_every_delivery_has_a_request_format() -> None:
    assert set(FORMAT_OF_DELIVERY) == set(Delivery.values)


async def test_the_backends_own_key_is_sent_and_no_other() -> None:
    with running_speech_server("--api-key", "backend-key") as server:
        async with speaking(described(server.url, api_key="backend-key")) as engine:
            assert await heard(engine, said("Hello."))
        async with speaking(described(server.url, api_key="other")) as engine:
            with pytest.raises(EngineError) as failure:
                await heard(engine, said("Hello."))
    assert failure.value.outcome == "backend_error"


@pytest.mark.parametrize("profile", PROFILES)
async def test_the_first_sound_comes_long_before_the_last(
    server: SpeechServer, profile: str
) -> None:
    text = "One two three four five six seven eight nine ten."
    async with speaking(described(server.url, profile, model="t [[sim pace=2]]")) as engine:
        running = [server.account()["running"] async for _ in engine.speak(said(text))]

    assert len(running) > 5
    assert running[0] == 1


@pytest.mark.parametrize("profile", PROFILES)
async def test_text_without_words_may_be_silent(server: SpeechServer, profile: str) -> None:
    model = "t [[sim fault=silence]]"

    assert not any(await spoken(server, "\u2026", profile=profile, model=model))


async def test_hindi_is_sent_unchanged(server: SpeechServer) -> None:
    async with speaking(described(server.url)) as engine:
        await heard(engine, said("नमस्ते दुनिया", language="hi"))

    assert server.requests_with("नमस्ते दुनिया")
