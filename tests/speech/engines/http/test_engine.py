"""Speaking through a speech server: the requests, and the sound of each delivery."""

from __future__ import annotations

from typing import Any

import pytest

from core.monitoring import observation
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


async def spoken(server: SpeechServer, text: str = TEXT, **changes: Any) -> bytes:
    async with speaking(described(server.url, **changes)) as engine:
        return await heard(engine, said(text))


_USUAL: dict[str, bytes] = {}


async def usual(server: SpeechServer, text: str = TEXT) -> bytes:
    """The sound of a whole file, which the server makes alike each time."""
    if text not in _USUAL:
        _USUAL[text] = await spoken(server, text)
    return _USUAL[text]


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_sentence_is_heard_in_each_profile(server: SpeechServer, profile: str) -> None:
    pcm = await spoken(server, profile=profile)

    assert sentence_heard(pcm, [WORDS, *OTHERS]) == WORDS
    assert pcm == await spoken(server)


def sim(behaviour: str, profile: str = "file", **changes: Any) -> dict[str, Any]:
    """A backend whose server speaks as ``behaviour`` says."""
    return {"model": f"tts [[sim {behaviour}]]", "profile": profile, **changes}


def asking(profile: str = "file", behaviour: str = "", **fields: str) -> dict[str, Any]:
    """A backend whose format is not described, and that is asked for ``fields``."""
    return sim(behaviour, profile, format_field="", extra_fields=fields)


KINDS: tuple[tuple[str, dict[str, str]], ...] = (("whole", {}), ("chunked", CHUNKED))
SIZES = ("exact", "zero", "max", "double", "half")
SAME: dict[str, dict[str, Any]] = {
    **{
        f"a {kind} WAV file with {sizes} sizes": sim(f"sizes={sizes} piece=777", extra_fields=extra)
        for sizes in SIZES
        for kind, extra in KINDS
    },
    **{
        f"a FLAC file with {sizes} length": asking(
            behaviour=f"sizes={sizes} piece=333", response_format="flac"
        )
        for sizes in SIZES[:2]
    },
    # The description says raw samples of a wrong rate.
    "events of a WAV file": asking("pcm", stream_format="sse", response_format="wav"),
    "a WAV file": asking("pcm", response_format="wav"),
    "events": asking("pcm", stream_format="sse", response_format="pcm"),
    **{
        f"{profile} in pieces of {piece}": sim(f"piece={piece}", profile)
        for profile in PROFILES
        for piece in (1, 7, 4095)
    },
}


@pytest.mark.parametrize("case", SAME)
async def test_the_same_sound_comes_as(server: SpeechServer, case: str) -> None:
    text = "Hi." if case.endswith("pieces of 1") else TEXT

    assert await spoken(server, text, **SAME[case]) == await usual(server, text)


RATES = ((22_050, "exact"), (44_100, "zero"), (48_000, "max"), (96_000, "exact"))
RAW = "rate=22050 piece=1001"
ALIKE: dict[str, dict[str, Any]] = {
    **{
        f"a file of {rate} Hz and {channels} channels": sim(
            f"rate={rate} channels={channels} sizes={sizes}"
        )
        for rate, sizes in RATES
        for channels in (1, 2)
    },
    **{
        f"a {kind} {name} file, recognised by its first bytes": asking(
            response_format=name, **extra
        )
        for name in ("flac", "mp3", "opus")
        for kind, extra in KINDS
    },
    **{
        f"{profile} of the configured {rate} Hz": sim(
            f"rate={rate} piece=1001", profile, sample_rate=rate
        )
        for profile in ("pcm", "sse")
        for rate in (16_000, 44_100)
    },
    "pcm of the rate in its type": sim(f"{RAW} type_rate=22050", "pcm"),
    "pcm of the rate in its header": sim(f"{RAW} header_rate=22050", "pcm"),
    "sse of the rate in its header": sim(f"{RAW} header_rate=22050", "sse"),
    "a file of its own rate": sim("rate=22050 header_rate=48000 type_rate=16000"),
}


@pytest.mark.parametrize("case", ALIKE)
async def test_a_sound_alike_comes_as(server: SpeechServer, case: str) -> None:
    pcm, reference = await spoken(server, **ALIKE[case]), await usual(server)

    off = 0.06 if "first bytes" in case else 0.01
    assert duration(pcm) == pytest.approx(duration(reference), abs=off)
    for low, high in BANDS:
        share = energy_between(reference, low, high)
        assert energy_between(pcm, low, high) == pytest.approx(share, abs=0.03), (low, high)
    if "channels" in case:
        mean = 0.75 if "2 channels" in case else 1.0
        assert loudness(pcm) == pytest.approx(mean * loudness(reference), rel=0.02)


async def test_a_low_rate_keeps_its_frequencies(server: SpeechServer) -> None:
    pcm = await spoken(server, model="tts [[sim rate=8000]]")

    assert duration(pcm) == pytest.approx(duration(await usual(server)), abs=0.01)
    assert energy_between(pcm, 4200, 12_000) < 0.001
    assert sentence_heard(pcm, [WORDS, *OTHERS]) == WORDS


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


async def test_the_trace_that_a_client_began_reaches_the_speech_server(
    server: SpeechServer,
) -> None:
    parent = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    scope = {"method": "POST", "headers": [(b"traceparent", parent)]}
    observation.begin("req_1", scope, "speech", "speech")
    await spoken(server, "Traced, please.")
    observation.nothing(None)
    await spoken(server, "Not traced, please.")

    (traced,) = server.requests_with("Traced, please.")
    (untraced,) = server.requests_with("Not traced, please.")
    assert "traceparent" in traced["received_headers"]
    assert "traceparent" not in untraced["received_headers"]


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
