"""The servers of the feature table as they run now."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from tests.real.servers.litellm import running_litellm
from tests.real.servers.llama import LlamaServer, running_llama
from tests.real.servers.transformers_serve import running_transformers
from tests.support.live import free_port


class Server(StrEnum):
    """A column of the table."""

    LLAMA_CPP = "llama.cpp"
    LITELLM = "LiteLLM's proxy"
    TRANSFORMERS = "transformers serve"


class Says(StrEnum):
    """Which made-up model is asked, by what it says; the value is its name behind LiteLLM."""

    NOISE = "tiny"
    CALLS = "caller"
    THOUGHTS = "thinker"


THOUGHT: Final = "A ledger has rows, and each row has a price."
ANSWER: Final = "It has नमस्ते 👩‍👩‍👧 rows."
TEXTS: Final[Mapping[Says, str | None]] = {
    Says.NOISE: None,
    Says.CALLS: (
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    ),
    Says.THOUGHTS: f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}",
}
_SPARE: Final = "spare"


@dataclass(frozen=True)
class Seat:
    """Where a model is served, and the llama.cpp server that computes there, if one does."""

    base_url: str
    name: str
    llama: LlamaServer | None = None


@dataclass(frozen=True)
class Upstream:
    """One server of the table.

    ``spare`` is served by a llama.cpp server at ``spare_port``, which a test starts and breaks.
    """

    server: Server
    seats: Mapping[Says, Seat]
    spare: Seat | None
    spare_port: int


class Upstreams:
    """Starts servers when they are first asked for, in ``directory``; ``close`` ends them.

    ``llama`` is the llama.cpp server with noise, which runs already.
    """

    def __init__(self, directory: Path, llama: LlamaServer) -> None:
        self._directory = directory
        self._llamas = {Says.NOISE: llama}
        self._stack = ExitStack()
        self._started: dict[Server, Upstream] = {}

    def close(self) -> None:
        self._stack.close()

    def get(self, server: Server) -> Upstream:
        """Skips the test where the server is not installed."""
        if server not in self._started:
            starts = {
                Server.LLAMA_CPP: self._llama_cpp,
                Server.LITELLM: self._litellm,
                Server.TRANSFORMERS: self._transformers,
            }
            self._started[server] = starts[server]()
        return self._started[server]

    def _place(self, name: str) -> Path:
        place = self._directory / name
        # It exists when a server did not start for an earlier test, which was skipped or failed.
        place.mkdir(exist_ok=True)
        return place

    def _speakers(self) -> dict[Says, LlamaServer]:
        for says, text in TEXTS.items():
            if says not in self._llamas:
                running = running_llama(self._place(says), text)
                self._llamas[says] = self._stack.enter_context(running)
        return self._llamas

    def _llama_cpp(self) -> Upstream:
        llamas, port = self._speakers(), free_port()
        return Upstream(
            Server.LLAMA_CPP,
            {says: Seat(llama.base_url, "tiny", llama) for says, llama in llamas.items()},
            Seat(f"http://127.0.0.1:{port}/v1", "tiny"),
            port,
        )

    def _litellm(self) -> Upstream:
        llamas, port = self._speakers(), free_port()
        routes = {says.value: llama.base_url for says, llama in llamas.items()}
        routes[_SPARE] = f"http://127.0.0.1:{port}/v1"
        proxy = self._stack.enter_context(running_litellm(self._place("litellm"), routes))
        return Upstream(
            Server.LITELLM,
            {says: Seat(proxy, says.value, llama) for says, llama in llamas.items()},
            Seat(proxy, _SPARE),
            port,
        )

    def _transformers(self) -> Upstream:
        place = self._place("transformers")
        address, model = self._stack.enter_context(running_transformers(place))
        return Upstream(Server.TRANSFORMERS, {Says.NOISE: Seat(address, model)}, None, 0)
