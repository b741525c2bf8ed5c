"""The form with which a reference clip is uploaded to a speech server."""

from __future__ import annotations

from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from typing import cast

from speech.engines.http.clone_uploads import form

CLIP = b"RIFF\r\n--\x00\xff" * 100


def test_a_form_holds_its_fields_and_its_file_unchanged() -> None:
    fields = {"consent": "yes", "name": "ein Name \u00e4"}
    body, content_type = form(fields, "audio_sample", CLIP, "svc_1.wav")

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
    assert CLIP in body


def test_a_field_name_cannot_end_its_header() -> None:
    body, _ = form({'a"\r\nx: y': "value"}, "file", CLIP, "clip.wav")
    assert b'name="a%22%0D%0Ax: y"' in body
    assert b"\r\nx: y" not in body
