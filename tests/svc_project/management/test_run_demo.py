"""``make run`` serves at once, whatever becomes of the natural voices, and says what prevents it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.support.live import NO_TLS, ROOT, Command, free_port, manage
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


@pytest.mark.long
def test_the_secrets_are_shown_by_the_first_start_that_serves(tmp_path: Path) -> None:
    port, speech_port, simulator_port = free_port(), free_port(), free_port()
    environment = {
        "SVC_DATA_DIR": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path}/demo.sqlite3",
        "PYTHONUNBUFFERED": "1",
    }
    start = [
        "run_demo",
        "--voices=plain",
        f"--port={port}",
        f"--speech-port={speech_port}",
        f"--simulator-port={simulator_port}",
    ]

    def refused(*more: str) -> str:
        ended = subprocess.run(
            [sys.executable, "manage.py", *start, *more],
            check=False,
            cwd=ROOT,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ended.returncode == 1, ended.stdout
        assert "svc is ready" not in ended.stdout
        return ended.stderr

    with socket.create_server(("127.0.0.1", 0)) as taken:
        other = taken.getsockname()[1]
        assert f"127.0.0.1:{other}: Address already in use" in refused(f"--port={other}")
        assert f"cannot serve on port {other}" in refused(f"--simulator-port={other}")
    nowhere = f"http://127.0.0.1:{free_port()}"
    assert f"{nowhere}: GET" in refused(f"--model-server={nowhere}")

    command = Command(start, environment, tmp_path / "demo.log")
    try:
        until(lambda: "Stop with Ctrl-C" in command.log.read_text(), 60)
        printed = command.log.read_text()
        assert re.search(r"console .*/console/ +demo@svc\.example / \S+", printed)
        assert len(re.findall(r"key +(svc_live_|svc_read_|sk_)", printed)) == 3
        until((tmp_path / "serve.json").exists)
        reloaded = manage("reload", **environment)
        assert (reloaded.returncode, "Restart it." in reloaded.stderr) == (1, True)
        # A second one would point the first one's catalog at its own simulator.
        ports = [f"--{name}={free_port()}" for name in ("port", "speech-port", "simulator-port")]
        assert f"(process {command.process.pid}) runs on {tmp_path} already" in refused(*ports)
    finally:
        command.stop(60)
