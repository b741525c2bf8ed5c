"""``make run`` serves at once, whatever becomes of the natural voices."""

from __future__ import annotations

import os
import re
from pathlib import Path

import httpx2
import pytest

from tests.support.live import NO_TLS, Command, free_port
from tests.support.until import until


@pytest.mark.long
def test_plain_voices_speak_where_natural_ones_cannot_be_installed(tmp_path: Path) -> None:
    port, speech_port = free_port(), free_port()
    nowhere = f"http://127.0.0.1:{free_port()}"
    command = Command(
        [
            "run_demo",
            f"--port={port}",
            f"--speech-port={speech_port}",
            f"--simulator-port={free_port()}",
        ],
        {
            "SVC_DATA_DIR": str(tmp_path),
            "DATABASE_URL": f"sqlite:///{tmp_path}/demo.sqlite3",
            "SVC_NEURAL_DIR": str(tmp_path / "neural"),
            "PYTHONUNBUFFERED": "1",
            "NPM_CONFIG_REGISTRY": nowhere,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": "",
            "PATH": "/nowhere",
        },
        tmp_path / "demo.log",
    )
    try:
        until(lambda: "Natural voices cannot be installed" in command.log.read_text(), 120)
        command.wait_for(f"127.0.0.1:{speech_port}")
        printed = command.log.read_text()
        [key] = re.findall(r"Speech key +(\S+)", printed)
        answer = httpx2.post(
            f"http://127.0.0.1:{speech_port}/v1/audio/speech",
            headers={"authorization": f"Bearer {key}"},
            json={"voice": "ava", "input": "Hello."},
            verify=NO_TLS,
        )
        assert answer.status_code == 200
        assert "Natural voices are being installed, 120 MB" in printed
        assert "make neural" in printed or "--styles" in printed
    finally:
        command.stop(60)
