"""Clones on a speech server: sent inline, uploaded once, or not supported; and deleted."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any, cast

import pytest

from speech.engines import EngineError, EngineTimeout, EngineUnavailable
from speech.engines.http.clone_uploads import form
from speech.engines.http.engine import HttpEngine
from tests.support.live import free_port
from tests.support.speech.speech_server import (
    Clips,
    SpeechServer,
    described,
    heard,
    running_speech_server,
    said,
    speaking,
)
from tests.support.until import until

CLONE = "voice_0190000000007000800000000000abcd"
WAV = b"RIFF" + bytes(range(256)) * 12_000
"""Three megabytes, as a long clip of a high rate has."""
DIGEST = hashlib.sha256(WAV).hexdigest()
UPLOAD: dict[str, Any] = {"clone_mode": "upload", "clone_field": "audio_sample"}


@pytest.fixture
def clips() -> Clips:
    return Clips({CLONE: WAV})


async def cloned(engine: HttpEngine, text: str = "It is me.") -> bytes:
    return await heard(engine, said(text, engine_voice="en-us", clone_id=CLONE))


@pytest.mark.parametrize("data_url", [True, False])
async def test_an_inline_clip_is_sent_with_each_request(
    server: SpeechServer, clips: Clips, data_url: bool
) -> None:
    backend = described(server.url, clone_mode="inline", clone_as_data_url=data_url)
    async with speaking(backend, clips) as engine:
        assert await cloned(engine, "First.")
        assert await cloned(engine, "Second.")

    entries = server.requests()
    assert [entry["clip_sha256"] for entry in entries] == [DIGEST, DIGEST]
    assert set(entries[0]["body"]) == {"model", "input", "response_format", "ref_audio"}


async def test_a_deleted_inline_clone_is_not_spoken(server: SpeechServer, clips: Clips) -> None:
    async with speaking(described(server.url, clone_mode="inline"), clips) as engine:
        await cloned(engine)
        del clips.wavs[CLONE]
        with pytest.raises(EngineError):
            await cloned(engine)
        assert engine.inflight == 0
    assert len(server.requests()) == 1


@pytest.mark.parametrize("mode", ["inline", "upload"])
async def test_a_clone_has_its_own_sound(server: SpeechServer, clips: Clips, mode: str) -> None:
    field = UPLOAD["clone_field"] if mode == "upload" else "ref_audio"
    backend = described(server.url, clone_mode=mode, clone_field=field)
    async with speaking(backend, clips) as engine:
        mine = await cloned(engine, "Good morning.")
        clips.wavs["voice_other"] = b"RIFF another"
        other = await heard(engine, said("Good morning.", clone_id="voice_other"))

    assert mine != other


async def test_no_clone_is_sent_to_a_server_without_clones(
    server: SpeechServer, clips: Clips
) -> None:
    async with speaking(described(server.url), clips) as engine:
        with pytest.raises(EngineError):
            await cloned(engine)
    assert not server.requests()


async def test_a_clip_is_uploaded_once_and_recorded(server: SpeechServer, clips: Clips) -> None:
    backend = described(server.url, **UPLOAD, upload_extra_fields={"consent": "true", "n": 7})
    async with speaking(backend, clips) as engine:
        await asyncio.gather(*(cloned(engine, f"Number {n}.") for n in range(8)))
    async with speaking(backend, clips) as engine:
        await cloned(engine, "After a restart.")

    (upload,) = until(lambda: server.requests("upload"))
    name = clips.names[CLONE, backend.id]
    assert re.fullmatch("svc_[0-9a-f]{32}", name)
    assert upload["body"] == {"consent": "true", "n": "7", "name": name}
    assert upload["clip_sha256"] == DIGEST
    spoken = server.requests("speech")
    assert len(spoken) == 9
    assert {entry["voice"] for entry in spoken} == {name}
    assert {entry["clip_sha256"] for entry in spoken} == {DIGEST}


async def test_a_clip_that_the_server_lost_is_uploaded_again(
    server: SpeechServer, clips: Clips
) -> None:
    backend = described(server.url, **UPLOAD)
    async with speaking(backend, clips) as engine:
        await cloned(engine)
        first = clips.names[CLONE, backend.id]
        server.client.delete(f"/v1/audio/voices/{first}").raise_for_status()
        await asyncio.gather(*(cloned(engine, f"Again {n}.") for n in range(4)))
        second = clips.names[CLONE, backend.id]

    assert first != second
    assert [entry["voice"] for entry in server.requests("upload")] == [first, second]
    assert server.client.get("/v1/audio/voices").json()["voices"].count(second) == 1


@pytest.mark.parametrize("status", [400, 404])
async def test_a_server_that_refuses_for_another_reason_is_not_flooded_with_uploads(
    server: SpeechServer, clips: Clips, status: int
) -> None:
    backend = described(server.url, **UPLOAD, model=f"t [[sim fault=status@{status}]]")
    async with speaking(backend, clips) as engine:
        for _ in range(3):
            with pytest.raises(EngineError):
                await cloned(engine)

    first, second = (entry["voice"] for entry in server.requests("upload"))
    assert clips.names[CLONE, backend.id] == second
    known = server.client.get("/v1/audio/voices").json()["voices"]
    assert second in known
    assert first not in known


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("fault=status@500", EngineError),
        ("fault=status@507", EngineError),
        ("first=20", EngineTimeout),
    ],
)
async def test_an_upload_that_fails_fails_the_utterance_and_leaves_nothing(
    server: SpeechServer, clips: Clips, fault: str, kind: type[EngineError]
) -> None:
    extra = {"consent": f"[[sim {fault}]]"}
    backend = described(server.url, **UPLOAD, upload_extra_fields=extra, first_byte_seconds=0.4)
    async with speaking(backend, clips) as engine:
        with pytest.raises(kind):
            await cloned(engine)
    assert not clips.names
    assert not server.requests("speech")
    assert len(server.requests("deletion")) == 1


@pytest.mark.long
async def test_an_upload_of_a_clone_deleted_meanwhile_is_deleted(
    server: SpeechServer, clips: Clips
) -> None:
    clips.deleted_while_uploading = True
    async with speaking(described(server.url, **UPLOAD), clips) as engine:
        with pytest.raises(EngineError):
            await cloned(engine)

    (upload,) = until(lambda: server.requests("upload"))
    (deletion,) = server.requests("deletion")
    assert upload["voice"] == deletion["voice"]
    assert deletion["status"] == 200
    assert not server.requests("speech")


@pytest.mark.parametrize("ends", ["the caller is cancelled", "the engine is closed"])
async def test_a_running_upload_is_not_undone(
    server: SpeechServer, clips: Clips, ends: str
) -> None:
    extra = {"consent": "[[sim first=0.4]]"}
    backend = described(server.url, **UPLOAD, upload_extra_fields=extra)
    async with speaking(backend, clips) as engine:
        caller = asyncio.ensure_future(cloned(engine))
        await server.runs(1)
        if ends == "the engine is closed":
            await engine.close()
        else:
            caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        if ends == "the caller is cancelled":
            await cloned(engine)

    (upload,) = until(lambda: server.requests("upload"))
    assert list(clips.names.values()) == [upload["voice"]]


async def test_a_deletion_deletes_the_upload_and_may_be_repeated(
    server: SpeechServer, clips: Clips
) -> None:
    backend = described(server.url, **UPLOAD)
    async with speaking(backend, clips) as engine:
        await cloned(engine)
        name = clips.names[CLONE, backend.id]
        await engine.delete_upload(name)
        await engine.delete_upload(name)

    assert name not in server.client.get("/v1/audio/voices").json()["voices"]
    assert [entry["status"] for entry in server.requests("deletion")] == [200, 404]


async def test_a_failed_deletion_raises() -> None:
    async with speaking(described(f"http://127.0.0.1:{free_port()}", **UPLOAD)) as engine:
        with pytest.raises(EngineUnavailable):
            await engine.delete_upload("svc_0")
    with running_speech_server("--api-key", "k") as server:
        async with speaking(described(server.url, **UPLOAD)) as engine:
            with pytest.raises(EngineError):
                await engine.delete_upload("svc_0")


async def test_a_copy_that_cannot_be_deleted_is_reported(
    server: SpeechServer, clips: Clips, caplog: pytest.LogCaptureFixture
) -> None:
    clips.deleted_while_uploading = True
    backend = described(server.url, **UPLOAD)
    async with speaking(backend, clips) as engine:

        async def failing(*_: object) -> None:
            raise EngineUnavailable

        engine._uploads._calls.delete = failing  # type: ignore[method-assign, assignment]
        with caplog.at_level(logging.ERROR), pytest.raises(EngineError):
            await cloned(engine)
    (upload,) = until(lambda: server.requests("upload"))
    assert upload["voice"] in caplog.text


# -- the form of an upload


def test_a_form_holds_its_fields_and_its_file_unchanged() -> None:
    fields = {"consent": "yes", "name": "ein Name \u00e4"}
    body, content_type = form(fields, "audio_sample", WAV[:3000], "svc_1.wav")

    message = BytesParser(policy=HTTP).parsebytes(
        b"content-type: " + content_type.encode() + b"\r\n\r\n" + body
    )
    *texts, file = cast(list[Message], message.get_payload())
    read = {
        str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True)
        for part in texts
    }
    assert read == {name: value.encode() for name, value in fields.items()}
    assert file.get_param("name", header="content-disposition") == "audio_sample"
    assert file.get_filename() == "svc_1.wav"
    assert file.get_content_type() == "audio/wav"
    assert WAV[:3000] in body


def test_a_field_name_cannot_end_its_header() -> None:
    body, _ = form({'a"\r\nx: y': "value"}, "file", WAV[:3000], "clip.wav")
    assert b'name="a%22%0D%0Ax: y"' in body
    assert b"\r\nx: y" not in body
