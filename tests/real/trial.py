"""One cell of the feature table at work: requests through the gateway, and directly for comparison."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.real.replies import Reply, reply_of
from tests.real.servers.llama import LlamaServer, running_llama
from tests.real.servers.upstreams import Says, Seat, Upstream
from tests.support.live import NO_TLS, Gateway
from tests.support.live_catalog import backend, publish
from usage.models import UsageRow

Body = dict[str, Any]

HELLO: list[Body] = [{"role": "user", "content": "Tell me about the ledger."}]
SETTLED: Body = {"messages": HELLO, "temperature": 0, "max_tokens": 24}
"""A request whose answer is the same each time."""
NEVER_ENDS: Body = {"max_tokens": 16_000, "temperature": 0, "logit_bias": {"4": -100, "2": -100}}
"""An answer that only the cap ends: its end tokens are forbidden."""


@dataclass(frozen=True)
class Trial:
    """What a check has in its hands. ``identifiers`` keeps what was published, over tests."""

    gateway: Gateway
    upstream: Upstream
    identifiers: dict[tuple[str, str], str]
    directory: Path

    def model(self, says: Says = Says.NOISE) -> str:
        """The identifier under which the gateway serves the model."""
        key = (self.upstream.server.value, says.value)
        if key not in self.identifiers:
            self.identifiers[key] = self.published(self.upstream.seats[says])
        return self.identifiers[key]

    def published(self, seat: Seat, **columns: Any) -> str:
        """The identifier of another model on ``seat``; ``columns`` are the backend's."""
        told = {"first_byte_seconds": 60, "idle_seconds": 60, **columns}
        server = backend(self.gateway, base_url=seat.base_url, **told)
        return publish(
            self.gateway, server, tool_calling=True, structured_output=True, served_as=seat.name
        ).identifier

    def ask(self, says: Says = Says.NOISE, **fields: Any) -> Reply:
        """Ask through the gateway. A success is compared with what the server itself counted.

        The row, what the client is told and the server's own figures are the same tokens.
        """
        llama = self.upstream.seats[says].llama
        if llama is None:
            reply = self.post(self.model(says), **fields)
            if reply.error is None:
                assert reply.tokens == self.direct(says, **fields).tokens
                self.assert_row_is(reply)
            return reply
        before = llama.be_quiet()
        reply = self.post(self.model(says), **fields)
        if reply.error is None:
            after = llama.counters()
            counted = (
                after.prompt_tokens - before.prompt_tokens,
                after.output_tokens - before.output_tokens,
            )
            assert reply.tokens == counted
            self.assert_row_is(reply)
        return reply

    def post(self, model: str, **fields: Any) -> Reply:
        """Ask ``model`` through the gateway."""
        return reply_of(self.gateway.post({"model": model, **SETTLED, **fields}, timeout=120))

    def assert_row_is(self, reply: Reply) -> None:
        """The row of a whole answer says what the client was told."""
        row = self.gateway.row(reply.request_id)
        assert (row.outcome, row.http_status, row.error_code) == ("success", 200, None)
        reported = row.backend_reported_input_tokens, row.backend_reported_output_tokens
        assert reported == reply.tokens
        assert row.generated_output_tokens == row.delivered_output_tokens == reply.tokens[1]

    def direct(self, says: Says = Says.NOISE, **fields: Any) -> Reply:
        """Ask the server itself the same."""
        seat = self.upstream.seats[says]
        body = {"model": seat.name, **SETTLED, **fields}
        if body.get("stream"):
            body["stream_options"] = {"include_usage": True}
        url = f"{seat.base_url}/chat/completions"
        return reply_of(httpx2.post(url, json=body, timeout=120, verify=NO_TLS))

    def llama(self, says: Says = Says.NOISE) -> LlamaServer:
        """The llama.cpp server that computes."""
        found = self.upstream.seats[says].llama
        assert found is not None
        return found

    def row(self) -> UsageRow:
        """The one row of the organization, for a client that did not wait."""
        (row,) = self.gateway.rows_when(1)
        return row

    @contextmanager
    def spare(self) -> Iterator[LlamaServer]:
        """A llama.cpp server behind ``upstream.spare``, to be broken."""
        self.directory.mkdir(exist_ok=True)
        with running_llama(self.directory, port=self.upstream.spare_port) as llama:
            yield llama

    def on_spare(self, **columns: Any) -> str:
        """The identifier of a model that the spare server answers for."""
        assert self.upstream.spare is not None
        return self.published(self.upstream.spare, **columns)


@contextmanager
def stopped(llama: LlamaServer) -> Iterator[None]:
    """The server does nothing (SIGSTOP), and goes on afterwards."""
    os.kill(llama.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(llama.process.pid, signal.SIGCONT)
