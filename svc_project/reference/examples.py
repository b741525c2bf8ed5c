"""An example of each operation in curl, Python and JavaScript, by operation id.

Addresses, model and voice are placeholders, which ``svc_project.reference.readers`` replaces.
"""

from __future__ import annotations

import re
from typing import Final

from accounts.console import snippets
from accounts.console.snippets import KEY_VARIABLE, Snippet

INFERENCE: Final = "https://inference.invalid/v1"
SPEECH: Final = "https://speech.invalid/v1"
MANAGEMENT: Final = "https://inference.invalid/manage/v1"
"""Stand for the base URLs (RFC 6761: no host has such a name)."""

MODEL: Final = "model.invalid"
"""Stands for a model's identifier."""
_PRONOUNCED: Final = {"word": "nginx", "pronunciation": "engine x"}
_MADE_PRONUNCIATION: Final = "pron_01a1f93d56457775bd74e582c264003f"
VOICE: Final = "voice.invalid"
"""Stands for a voice's id."""
_WRITTEN: Final = (
    (re.compile(r"http://127\.0\.0\.1:8000(?=/)"), INFERENCE.removesuffix("/v1")),
    (re.compile(r"http://127\.0\.0\.1:8001(?=/)"), SPEECH.removesuffix("/v1")),
    (
        re.compile(r"ws://127\.0\.0\.1:8001(?=/)"),
        SPEECH.replace("https:", "wss:").removesuffix("/v1"),
    ),
    (re.compile(r"acme/demo-8b"), MODEL),
    (re.compile(r"\bava\b"), VOICE),
)
"""What guides and recorded answers have of a gateway on the reader's machine and its demo catalog."""
_KEY_ID: Final = "00000000-0000-4000-8000-000000000000"
"""Stands for the id of a key."""
_MADE_VOICE: Final = "VOICE"

_ASKED: Final = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "Hello!"}],
    "stream": True,
}
_SPOKEN: Final = {"voice": VOICE, "input": "Hello! How do I sound?", "response_format": "wav"}

_CLONING_CURL: Final = f"""printf '{{"name": "Anna", "consent": true, "audio_b64": "%s"}}' "$(base64 -w 0 anna.wav)" |
  curl {SPEECH}/voices \\
    -H "Authorization: Bearer ${KEY_VARIABLE}" \\
    -H "Content-Type: application/json" \\
    -d @-"""
_CLONING_PYTHON: Final = f"""import base64
import os
from pathlib import Path

import httpx

answer = httpx.post(
    "{SPEECH}/voices",
    headers={{"Authorization": f"Bearer {{os.environ['{KEY_VARIABLE}']}}"}},
    json={{
        "name": "Anna",
        "consent": True,
        "audio_b64": base64.b64encode(Path("anna.wav").read_bytes()).decode(),
    }},
)
print(answer.raise_for_status().json())"""
_CLONING_JAVASCRIPT: Final = f"""import {{ readFile }} from "node:fs/promises";

const answer = await fetch("{SPEECH}/voices", {{
  method: "POST",
  headers: {{
    Authorization: `Bearer ${{process.env.{KEY_VARIABLE}}}`,
    "Content-Type": "application/json",
  }},
  body: JSON.stringify({{
    name: "Anna",
    consent: true,
    audio_b64: (await readFile("anna.wav")).toString("base64"),
  }}),
}});
console.log(await answer.json());"""
_SESSION_ADDRESS: Final = SPEECH.replace("https:", "wss:") + "/audio/speech/stream"
_SESSION_CURL: Final = f"""curl -i -N --http1.1 {SPEECH}/audio/speech/stream \\
  -H "Authorization: Bearer ${KEY_VARIABLE}" \\
  -H "Connection: Upgrade" -H "Upgrade: websocket" \\
  -H "Sec-WebSocket-Version: 13" -H "Sec-WebSocket-Key: $(openssl rand -base64 16)\""""
_SESSION_PYTHON: Final = f"""import json
import os
from pathlib import Path

from websockets.sync.client import connect

headers = {{"Authorization": f"Bearer {{os.environ['{KEY_VARIABLE}']}}"}}
with connect("{_SESSION_ADDRESS}", additional_headers=headers) as session:
    session.send(json.dumps({{"type": "start", "voice": "{VOICE}"}}))
    session.send(json.dumps({{"type": "text", "text": "One sentence. And another one."}}))
    session.send(json.dumps({{"type": "done"}}))
    files = 0
    for message in session:
        if isinstance(message, bytes):
            files += 1
            Path(f"sentence-{{files}}.wav").write_bytes(message)
        else:
            print(message)"""
_SESSION_JAVASCRIPT: Final = f"""import {{ writeFileSync }} from "node:fs";
import WebSocket from "ws";

const session = new WebSocket("{_SESSION_ADDRESS}", {{
  headers: {{ Authorization: `Bearer ${{process.env.{KEY_VARIABLE}}}` }},
}});
session.on("open", () => {{
  session.send(JSON.stringify({{ type: "start", voice: "{VOICE}" }}));
  session.send(JSON.stringify({{ type: "text", text: "One sentence. And another one." }}));
  session.send(JSON.stringify({{ type: "done" }}));
}});
let files = 0;
session.on("message", (data, isBinary) => {{
  if (isBinary) writeFileSync(`sentence-${{++files}}.wav`, data);
  else console.log(data.toString());
}});"""
_CLONING: Final = (
    Snippet("curl", "curl", _CLONING_CURL),
    Snippet("python", "Python", _CLONING_PYTHON, "pip install httpx"),
    Snippet("javascript", "JavaScript", _CLONING_JAVASCRIPT),
)
_SESSION: Final = (
    Snippet("curl", "curl", _SESSION_CURL),
    Snippet("python", "Python", _SESSION_PYTHON, "pip install websockets"),
    Snippet("javascript", "JavaScript", _SESSION_JAVASCRIPT, "npm install ws"),
)
"""A session over a WebSocket. curl cannot speak the protocol, so it requests the upgrade only."""


def with_placeholders(text: str) -> str:
    """``text`` of the repository with placeholders where it names addresses, model and voice."""
    for written, placeholder in _WRITTEN:
        text = written.sub(placeholder, text)
    return text


def inference_examples() -> dict[str, tuple[Snippet, ...]]:
    """The examples of the inference surface."""
    return {
        "createChatCompletion": snippets.chat(INFERENCE, _ASKED),
        "listModels": snippets.get(f"{INFERENCE}/models"),
        "getModel": snippets.get(f"{INFERENCE}/models/{MODEL}"),
        "getUsage": snippets.get(f"{INFERENCE}/usage?group_by=model,api_key"),
        "exportUsage": snippets.get(f"{INFERENCE}/usage/export?limit=100"),
    }


def speech_examples() -> dict[str, tuple[Snippet, ...]]:
    """The examples of the speech surface."""
    return {
        "createSpeech": snippets.speech(SPEECH, _SPOKEN),
        "streamSpeech": _SESSION,
        "listVoices": snippets.get(f"{SPEECH}/models"),
        "getVoice": snippets.get(f"{SPEECH}/models/{VOICE}"),
        "listNamedVoices": snippets.get(f"{SPEECH}/audio/voices"),
        "listNamedModels": snippets.get(f"{SPEECH}/audio/models"),
        "createVoice": _CLONING,
        "deleteVoice": snippets.get(f"{SPEECH}/voices/{_MADE_VOICE}", method="DELETE"),
        "listPronunciations": snippets.get(f"{SPEECH}/pronunciations"),
        "putPronunciation": snippets.send(f"{SPEECH}/pronunciations", "POST", _PRONOUNCED),
        "deletePronunciation": snippets.get(
            f"{SPEECH}/pronunciations/{_MADE_PRONUNCIATION}", method="DELETE"
        ),
        "getHealth": snippets.get(SPEECH.removesuffix("/v1") + "/health", needs_key=False),
    }


def management_examples() -> dict[str, tuple[Snippet, ...]]:
    """The examples of the management API."""
    organization = f"{MANAGEMENT}/organizations/acme"
    user = f"{MANAGEMENT}/users/ada@acme.example"
    key = f"{MANAGEMENT}/keys/{_KEY_ID}"
    limits = {"requests_per_minute": 600}
    wanted = {"organization": "acme", "scope": "inference", "label": "shop"}
    voices = {"voices": [{"id": "ava", "engine_voice": "en-us+f3"}]}
    return {
        "listOrganizations": snippets.get(f"{MANAGEMENT}/organizations"),
        "getOrganization": snippets.get(organization),
        "putOrganization": snippets.send(organization, "PUT", {"plan": "standard", **limits}),
        "changeOrganization": snippets.send(organization, "PATCH", limits),
        "disableOrganization": snippets.get(organization, method="DELETE"),
        "listUsers": snippets.get(f"{MANAGEMENT}/users?organization=acme"),
        "getUser": snippets.get(user),
        "putUser": snippets.send(user, "PUT", {"organizations": ["acme"]}),
        "changeUser": snippets.send(user, "PATCH", {"active": True}),
        "disableUser": snippets.get(user, method="DELETE"),
        "linkUser": snippets.get(f"{user}/link", method="POST"),
        "listKeys": snippets.get(f"{MANAGEMENT}/keys?organization=acme"),
        "createKey": snippets.send(f"{MANAGEMENT}/keys", "POST", wanted),
        "getKey": snippets.get(key),
        "changeKey": snippets.send(key, "PATCH", limits),
        "revokeKey": snippets.get(key, method="DELETE"),
        "rotateKey": snippets.send(f"{key}/rotate", "POST", {"overlap_seconds": 3600}),
        "getCatalog": snippets.get(f"{MANAGEMENT}/catalog"),
        "putCatalog": snippets.send(f"{MANAGEMENT}/catalog?dry_run=true", "PUT", voices),
        "listPrices": snippets.get(f"{MANAGEMENT}/prices?model={MODEL}"),
    }
