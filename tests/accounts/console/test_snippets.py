"""Code of a WebSocket session, run as it stands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accounts.console.snippets import Snippet, speech_stream
from tests.support.speech.caller import SpeechAccount, seconds

START = {"type": "start", "voice": "ava", "response_format": "wav"}
TEXTS = ['It\'s "quoted". We walked', " along the river.\n"]
PEER = """
import { EventEmitter } from "node:events";

export default class WebSocket extends EventEmitter {
  constructor(address, { headers }) {
    super();
    console.log(JSON.stringify({ address, headers }));
    setTimeout(() => {
      this.emit("open");
      this.emit("message", Buffer.from("RIFF"), true);
      this.emit("message", Buffer.from('{"type":"session.done"}'), false);
    });
  }
  send(message) { console.log(message); }
}
"""
"""A stand-in for the package ``ws`` that prints what is sent and answers one sentence."""


def run(command: list[str], folder: Path, key: str) -> list[Any]:
    """Run a program; return the JSON documents that it printed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "SVC_API_KEY": key, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def snippet(base_url: str, name: str) -> Snippet:
    return next(each for each in speech_stream(base_url, START, TEXTS) if each.name == name)


def test_the_python_code_speaks_each_sentence_into_a_file(
    speech: SpeechAccount, tmp_path: Path
) -> None:
    code = snippet(speech.url.replace("http", "ws") + "/v1", "python").code

    printed = run([sys.executable, "-c", code], tmp_path, speech.key)

    assert [each["type"] for each in printed] == ["ready", "session.done"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["sentence-1.wav", "sentence-2.wav"]
    assert seconds((tmp_path / "sentence-2.wav").read_bytes()) > 0.5
    (row,) = speech.rows()
    assert row.characters == len("".join(TEXTS))


def test_the_javascript_code_sends_the_messages_and_writes_the_sentences(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is missing: install Node.js 20 or newer to run this test")
    package = tmp_path / "node_modules/ws"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"type": "module", "exports": "./index.js"}')
    (package / "index.js").write_text(PEER)
    (tmp_path / "session.mjs").write_text(snippet("ws://host:8001/v1", "javascript").code)

    opened, *sent, done = run(["node", "session.mjs"], tmp_path, "sk_test")

    assert opened == {
        "address": "ws://host:8001/v1/audio/speech/stream",
        "headers": {"Authorization": "Bearer sk_test"},
    }
    assert sent == [START, *({"type": "text", "text": text} for text in TEXTS), {"type": "done"}]
    assert done == {"type": "session.done"}
    assert (tmp_path / "sentence-1.wav").read_bytes() == b"RIFF"
