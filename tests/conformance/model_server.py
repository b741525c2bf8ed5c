"""A model server for suites that expect a model to understand them: the simulator behind a script.

Suites ask for three things that the simulator cannot do, which are no question to a gateway: JSON
with keys that only the prompt names, a tool's argument quoted beside other names, and a text as long
as its cap allows. Their requests are put in words that the simulator understands; all else passes as
it is.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

_QUOTED: Final = re.compile(r"'([^']+)'")
_JOKE: Final = {"setup": "Why did the cat sit on the book?", "punchline": "To learn it by heart."}
_LONG: Final = 512
"""The cap from which on a long answer is wanted."""
_PACE: Final = 500
_READ: Final = 65536
_SECONDS: Final = 60


def understood(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chat request that makes the simulator answer as its last message asks."""
    messages = list(body["messages"])
    last = dict(messages[-1])
    text = last.get("content")
    if last.get("role") != "user" or not isinstance(text, str):
        return dict(body)
    quoted = _QUOTED.findall(text)
    form = (body.get("response_format") or {}).get("type")
    if form == "json_object":
        if "joke" in text:
            # The keys in quotes, or those of a joke: in JSON mode LangChain sends no schema.
            keys = quoted or list(_JOKE)
            last["content"] = f"say: {json.dumps({key: _JOKE.get(key, '') for key in keys})}"
    elif body.get("tools") and quoted:
        last["content"] = f"'{quoted[0]}'"
    elif (body.get("max_tokens") or 0) >= _LONG:
        last["content"] = f"{text} [[sim tokens={_LONG // 2} pace={_PACE}]]"
    messages[-1] = last
    return {**body, "messages": messages}


@contextmanager
def scripted_model_server(simulator_port: int) -> Iterator[int]:
    """Serve on a free port until the block ends; yield the port."""

    class Handler(_Handler):
        port = simulator_port

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    """Passes a request on to the simulator, and its answer back as it comes."""

    port: int
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._pass(None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/v1/chat/completions":
            body = json.dumps(understood(json.loads(body))).encode()
        self._pass(body)

    def _pass(self, body: bytes | None) -> None:
        simulator = HTTPConnection("127.0.0.1", self.port, timeout=_SECONDS)
        try:
            simulator.request(self.command, self.path, body, {"content-type": "application/json"})
            self._answer(simulator.getresponse())
        finally:
            simulator.close()

    def _answer(self, answer: HTTPResponse) -> None:
        """Send the answer on; it ends with its connection, which needs no framing of its own."""
        self.close_connection = True
        self.send_response(answer.status)
        self.send_header("content-type", answer.headers["content-type"])
        self.send_header("connection", "close")
        self.end_headers()
        while part := answer.read1(_READ):
            self.wfile.write(part)
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""
