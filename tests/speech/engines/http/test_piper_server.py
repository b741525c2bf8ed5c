"""A real Piper server as a backend: its sample rate, files and refusals.

It is local-tts-studio with an untrained voice (``piper_voice.py``), from ``.venv-clients``.
"""

from __future__ import annotations

import io
import os
import subprocess
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from speech.audio.pcm import duration
from tests.support.clients.separate_environment import program
from tests.support.live import NO_TLS, ROOT, free_port
from tests.support.servers.programs import running
from tests.support.speech.speech_server import described, heard, said, speaking

TEXT = "The ledger has three rows."
VOICE = "en_US-tiny-low"

# The first start loads a hundred megabytes of libraries.
pytestmark = [pytest.mark.long, pytest.mark.timeout(200)]


@pytest.fixture(scope="module")
def piper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server, without ``/v1``."""
    data = tmp_path_factory.mktemp("piper")
    subprocess.run(
        [program("python"), ROOT / "tests/support/speech/piper_voice.py", data],
        check=True,
        timeout=120,
    )
    port = free_port()
    command = [str(program("local-tts")), "--host", "127.0.0.1", "--port", str(port)]
    path = f"{_folder_with_ffmpeg(data)}:{os.environ['PATH']}"
    environment = {**os.environ, "LOCAL_TTS_DATA_DIR": str(data), "PATH": path}
    with running(command, port, data / "log", env=environment):
        yield f"http://127.0.0.1:{port}"


def _folder_with_ffmpeg(data: Path) -> Path:
    """The server makes compressed files with a program of that name."""
    ask = "import imageio_ffmpeg; print(imageio_ffmpeg.get_ffmpeg_exe())"
    told = subprocess.run(
        [program("python"), "-c", ask], capture_output=True, text=True, check=True
    )
    folder = data / "bin"
    folder.mkdir()
    (folder / "ffmpeg").symlink_to(told.stdout.strip())
    return folder


@pytest.fixture(scope="module")
def usual(piper: str) -> float:
    """Seconds of the sentence in the server's own WAV file."""
    question = {"model": "tts-1", "voice": VOICE, "input": TEXT}
    answer = httpx2.post(f"{piper}/v1/audio/speech", json=question, timeout=60, verify=NO_TLS)
    assert answer.status_code == 200, answer.text
    with wave.open(io.BytesIO(answer.content)) as file:
        assert file.getframerate() == 22_050
        return float(file.getnframes() / file.getframerate())


DELIVERIES: dict[str, dict[str, Any]] = {
    "file": {"delivery": "file"},
    "pcm": {"delivery": "pcm"},
    "flac": {"format_field": "", "extra_fields": {"response_format": "flac"}},
    "mp3": {"format_field": "", "extra_fields": {"response_format": "mp3"}},
    "opus": {"format_field": "", "extra_fields": {"response_format": "opus"}},
}


async def spoken(piper: str, rate: float = 1.0, **changes: Any) -> bytes:
    async with speaking(described(piper, model="tts-1", **changes)) as engine:
        return await heard(engine, said(TEXT, engine_voice=VOICE, rate=rate))


@pytest.mark.parametrize("name", DELIVERIES)
async def test_a_sentence_is_as_long_as_the_server_spoke_it(
    piper: str, usual: float, name: str
) -> None:
    pcm = await spoken(piper, **DELIVERIES[name])

    assert duration(pcm) == pytest.approx(usual, abs=0.08)


async def test_a_speed_that_the_server_ignores_does_no_harm(piper: str, usual: float) -> None:
    assert duration(await spoken(piper, rate=2.0)) == pytest.approx(usual, abs=0.08)
