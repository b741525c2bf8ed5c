"""Times of words that a speech server gives, in each of the two ways that servers have."""

from __future__ import annotations

import struct
from base64 import b64encode

import msgspec
import numpy as np
import pytest

from speech.audio.pcm import SAMPLE_RATE, duration, pcm_bytes
from speech.engines import EngineFull, EngineProtocolError, SpokenWord, Utterance
from speech.engines.http.audio_readers import AudioCheck, CaptionsReader, Delivery
from speech.engines.http.backend import ServerRef
from speech.engines.http.client import RequestRefused
from speech.engines.http.engine import HttpEngine
from speech.engines.http.word_times import captions, header_words
from speech.voices.snapshot import VoiceRef
from tests.support.servers.scripted import ScriptedServer, running, sized
from tests.support.speech.speech_server import SpeechServer, described, said, speaking

DEEP = '{"x": ' + "[" * 5000 + "]" * 5000
FFMPEG_HEADER = (
    b"RIFF\xff\xff\xff\xffWAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, SAMPLE_RATE, 2 * SAMPLE_RATE, 2, 16)
    + b"LIST\x1a\x00\x00\x00INFOISFT\x0d\x00\x00\x00Lavf62.3.100\x00\x00data\xff\xff\xff\xff"
)
LOUD = pcm_bytes(np.resize(np.array([9000, -9000], np.int16), SAMPLE_RATE))
TEXT = "We walked along the river."
WORDS = TEXT.rstrip(".").split()


async def timed(engine: HttpEngine, utterance: Utterance) -> tuple[bytes, list[SpokenWord]]:
    pieces = [piece async for piece in engine.spoken(utterance, is_timed=True)]
    sound = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    words = [piece for piece in pieces if isinstance(piece, SpokenWord)]
    assert pieces[: len(words)] == words
    return sound, words


@pytest.mark.parametrize("profile", ["file", "pcm", "sse"])
@pytest.mark.parametrize("word_times", ["header", "captions"])
async def test_the_words_of_a_server_come_ahead_of_their_sound(
    server: SpeechServer, profile: str, word_times: str
) -> None:
    backend = described(server.url, profile, word_times=word_times)
    async with speaking(backend) as engine:
        usual = b"".join([piece async for piece in engine.speak(said(TEXT))])
        sound, words = await timed(engine, said(TEXT))

    assert [word.text for word in words] == WORDS
    assert all(0 <= word.start < word.end <= duration(sound) for word in words)
    assert abs(len(sound) - len(usual)) < 0.01 * 2 * SAMPLE_RATE
    plain, asked = server.requests()
    assert plain["kind"] == "speech"
    assert "word_timestamps" not in plain["body"]
    assert asked["kind"] == ("captions" if word_times == "captions" else "speech")
    assert asked["body"]["stream"] is False
    assert "stream_format" not in asked["body"]


async def test_a_text_whose_times_are_too_many_for_the_header_is_spoken_without(
    server: SpeechServer,
) -> None:
    async with speaking(described(server.url, word_times="header")) as engine:
        sound, words = await timed(engine, said("We go. " * 45))

    assert words == []
    assert duration(sound) > 5


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("", []),
        ("[1]", []),
        ("nonsense", []),
        ('[{"word": "a"}]', []),
        (f"[{DEEP}}}]", []),
        ('[{"word": "\\u0905\\u0902,", "start_ms": 10, "end_ms": 20.5}]', [("अं", 0.01, 0.0205)]),
        (
            '[{"word": "a", "start_ms": 50, "end_ms": 40}, {"word": "...", "start_ms": 1, "end_ms": 2},'
            ' {"word": "(b)", "start_ms": -9, "end_ms": 60}]',
            [("a", 0.05, 0.05), ("b", 0.05, 0.06)],
        ),
    ],
)
def test_what_is_no_time_is_left_out(header: str, words: list[tuple[str, float, float]]) -> None:
    assert header_words(header, TEXT) == [SpokenWord(*word) for word in words]


def test_captions_have_a_sound_and_perhaps_times() -> None:
    def answer(**fields: object) -> bytes:
        audio = b64encode(b"RIFF").decode()
        return msgspec.json.encode({"audio": audio, "audio_format": "audio/wav", **fields})

    one = {"word": "a", "start_time": 0.5, "end_time": 0.75}
    assert captions(answer(timestamps=[one]) + b"\n", TEXT) == (
        (b"RIFF", "audio/wav", [SpokenWord("a", 0.5, 0.75)])
    )
    assert captions(answer(timestamps=None), TEXT)[2] == []
    for broken in (
        b"",
        b"[]",
        f"{DEEP}}}".encode(),
        answer(timestamps=[{}]),
        answer(audio="%"),
        b'{"error": "full"}',
    ):
        with pytest.raises(EngineProtocolError):
            captions(broken, TEXT)


def test_an_answer_as_kokoro_fastapi_composes_it_is_read() -> None:
    """Its WAV is written by FFmpeg into a pipe, without sizes, and where it cut the silence before the first
    word that begins before 0; signs are words of their own, and a name may be one word."""
    pcm = pcm_bytes(np.arange(-6000, 6000, dtype=np.int16))
    times = [
        {"word": "We", "start_time": -0.012, "end_time": 0.1},
        {"word": "like", "start_time": 0.1, "end_time": 0.2},
        {"word": "New York", "start_time": 0.2, "end_time": 0.4, "voice": "af_heart"},
        {"word": ".", "start_time": 0.4, "end_time": 0.4},
    ]
    answer = {
        "audio": b64encode(FFMPEG_HEADER + pcm).decode(),
        "audio_format": "audio/wav",
        "timestamps": times,
    }
    reader = CaptionsReader(SAMPLE_RATE, "We like New York.", 100_000)
    assert reader.feed(msgspec.json.encode(answer)) == b""

    assert reader.finish() == pcm
    assert reader.words == [
        SpokenWord("We", 0.0, 0.1),
        SpokenWord("like", 0.1, 0.2),
        SpokenWord("New York", 0.2, 0.4),
    ]


@pytest.mark.parametrize("refusal", [sized(b"{}", 400), sized(b"{}", 500), sized(b"{}", 404)])
@pytest.mark.parametrize("word_times", ["header", "captions"])
async def test_a_server_that_fails_with_times_is_asked_without(
    word_times: str, refusal: bytes
) -> None:
    server = ScriptedServer(
        [[refusal], [sized(FFMPEG_HEADER + LOUD, 200, "content-type: audio/wav")]]
    )
    async with (
        running(server),
        speaking(described(server.url(""), word_times=word_times)) as engine,
    ):
        assert await timed(engine, said(TEXT)) == (LOUD, [])

    with_times, without = server.requests
    assert b"timestamps" in with_times
    assert without.startswith(b"POST /v1/audio/speech ")
    assert b"timestamps" not in without


@pytest.mark.parametrize("status", [503, 401, 403, 413])
async def test_a_server_that_is_full_or_wants_another_key_or_less_is_not_asked_again(
    status: int,
) -> None:
    server = ScriptedServer([[sized(b"{}", status)]])
    async with (
        running(server),
        speaking(described(server.url(""), word_times="captions")) as engine,
    ):
        with pytest.raises(EngineFull if status == 503 else RequestRefused):
            await timed(engine, said(TEXT))
    assert len(server.requests) == 1


def test_no_answer_has_more_words_than_its_text_can_have() -> None:
    most = 2 * len(TEXT) + 100
    header = [{"word": "a", "start_ms": 1, "end_ms": 2}] * (most + 1)
    times = [{"word": "a", "start_time": 1, "end_time": 2}] * (most + 1)
    answer = msgspec.json.encode({"audio": "", "timestamps": times})

    assert len(header_words(msgspec.json.encode(header).decode(), TEXT)) == most
    assert len(captions(answer, TEXT)[2]) == most


def test_an_answer_with_captions_is_bounded_by_its_text() -> None:
    check = AudioCheck(Delivery("captions", SAMPLE_RATE), "Hi.")
    megabyte = b" " * 1_000_000
    for _ in range(4):
        assert check.feed(megabyte) == b""
    with pytest.raises(EngineProtocolError, match="too large for the text"):
        check.feed(megabyte)


def test_a_voice_has_times_if_each_of_its_servers_gives_them() -> None:
    none, header, both = (
        described("http://127.0.0.1", word_times=kind) for kind in ("none", "header", "captions")
    )
    assert not VoiceRef("ava", "en", "ava", none).has_word_times
    assert VoiceRef("ava", "en", "ava", header).has_word_times
    servers = (ServerRef(header, "a"), ServerRef(both, "b"))
    assert VoiceRef("ava", "en", "ava", header, servers=servers).has_word_times
    mixed = (*servers, ServerRef(none, "c"))
    assert not VoiceRef("ava", "en", "ava", header, servers=mixed).has_word_times
