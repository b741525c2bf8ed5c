"""A WebSocket session: text goes in piece by piece, every sentence comes back as a file.

    SVC_TTS_WS_URL=ws://127.0.0.1:8001 SVC_SPEECH_KEY=sk_... .venv/bin/python docs/examples/speak.py

writes sentence-1.wav, sentence-2.wav, ... It needs the package ``websockets``, which svc installs.
"""

import json
import os
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

TEXT = [
    "Good morning. This text ",
    "arrives in pieces, [pause] as a language model writes it. ",
    "Every sentence is spoken as soon as it is complete!",
]

address = os.environ.get("SVC_TTS_WS_URL", "ws://127.0.0.1:8001") + "/v1/audio/speech/stream"
headers = {"Authorization": f"Bearer {os.environ['SVC_SPEECH_KEY']}"}
voice = os.environ.get("SVC_VOICE", "ava")

with connect(address, additional_headers=headers) as session:
    session.send(json.dumps({"type": "start", "voice": voice, "response_format": "wav"}))
    print("server:", session.recv())
    for piece in TEXT:
        session.send(json.dumps({"type": "text", "text": piece}))
    session.send(json.dumps({"type": "done"}))

    sentences = 0
    try:
        for frame in session:
            if isinstance(frame, bytes):
                sentences += 1
                path = Path(f"sentence-{sentences}.wav")
                path.write_bytes(frame)
                print(f"{path}: {len(frame)} bytes")
            else:
                print("server:", frame)
    except ConnectionClosed as closed:
        print("closed:", closed)
