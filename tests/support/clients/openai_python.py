"""openai-python in its two forms behind one interface, so that both have the same conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from openai import AsyncOpenAI
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ParsedChatCompletion
from pydantic import BaseModel

from tests.support.clients.conversation import MODEL
from tests.support.live import Gateway

Messages = list[Any]
Answer = TypeVar("Answer", bound=BaseModel)
Result = TypeVar("Result")


def asked(text: str) -> Messages:
    """Make a conversation that begins with ``text``."""
    return [{"role": "user", "content": text}]


class SyncClient:
    """``OpenAI``."""

    def __init__(self, gateway: Gateway) -> None:
        self.sdk = gateway.openai()

    def models(self) -> list[Model]:
        return list(self.sdk.models.list())

    def model(self, identifier: str) -> Model:
        return self.sdk.models.retrieve(identifier)

    def ask(self, messages: Messages, **fields: Any) -> ChatCompletion:
        answer: ChatCompletion = self.sdk.chat.completions.create(
            messages=messages, **{"model": MODEL, **fields}
        )
        return answer

    def stream(self, messages: Messages, **fields: Any) -> list[ChatCompletionChunk]:
        with self.sdk.chat.completions.create(
            messages=messages, stream=True, **{"model": MODEL, **fields}
        ) as stream:
            return list(stream)

    def parse(
        self, messages: Messages, shape: type[Answer], **fields: Any
    ) -> ParsedChatCompletion[Answer]:
        return self.sdk.chat.completions.parse(
            model=MODEL, messages=messages, response_format=shape, **fields
        )

    def helper(self, messages: Messages, **fields: Any) -> tuple[list[Any], ChatCompletion]:
        """``stream()``: its events and ``get_final_completion()``."""
        with self.sdk.chat.completions.stream(model=MODEL, messages=messages, **fields) as stream:
            return list(stream), stream.get_final_completion()

    def disconnect_after(self, chunks: int, messages: Messages, **fields: Any) -> str:
        """Begin a stream, break out of it after ``chunks`` chunks, and return the text until then."""
        text = ""
        with self.sdk.chat.completions.create(
            messages=messages, stream=True, **{"model": MODEL, **fields}
        ) as stream:
            for number, chunk in enumerate(stream, 1):
                text += chunk.choices[0].delta.content or ""
                if number == chunks:
                    break
        return text

    def close(self) -> None:
        self.sdk.close()


class AsyncClient:
    """``AsyncOpenAI``, with an event loop and a client for each call."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def _run(self, work: Callable[[AsyncOpenAI], Awaitable[Result]]) -> Result:
        async def with_client() -> Result:
            async with self._gateway.async_openai() as sdk:
                return await work(sdk)

        return asyncio.run(with_client())

    def models(self) -> list[Model]:
        async def work(sdk: AsyncOpenAI) -> list[Model]:
            return [model async for model in sdk.models.list()]

        return self._run(work)

    def model(self, identifier: str) -> Model:
        return self._run(lambda sdk: sdk.models.retrieve(identifier))

    def ask(self, messages: Messages, **fields: Any) -> ChatCompletion:
        async def work(sdk: AsyncOpenAI) -> ChatCompletion:
            answer: ChatCompletion = await sdk.chat.completions.create(
                messages=messages, **{"model": MODEL, **fields}
            )
            return answer

        return self._run(work)

    def stream(self, messages: Messages, **fields: Any) -> list[ChatCompletionChunk]:
        async def work(sdk: AsyncOpenAI) -> list[ChatCompletionChunk]:
            async with await sdk.chat.completions.create(
                messages=messages, stream=True, **{"model": MODEL, **fields}
            ) as stream:
                return [chunk async for chunk in stream]

        return self._run(work)

    def parse(
        self, messages: Messages, shape: type[Answer], **fields: Any
    ) -> ParsedChatCompletion[Answer]:
        return self._run(
            lambda sdk: sdk.chat.completions.parse(
                model=MODEL, messages=messages, response_format=shape, **fields
            )
        )

    def helper(self, messages: Messages, **fields: Any) -> tuple[list[Any], ChatCompletion]:
        async def work(sdk: AsyncOpenAI) -> tuple[list[Any], ChatCompletion]:
            async with sdk.chat.completions.stream(
                model=MODEL, messages=messages, **fields
            ) as stream:
                return [event async for event in stream], await stream.get_final_completion()

        return self._run(work)

    def disconnect_after(self, chunks: int, messages: Messages, **fields: Any) -> str:
        async def work(sdk: AsyncOpenAI) -> str:
            text = ""
            number = 0
            async with await sdk.chat.completions.create(
                messages=messages, stream=True, **{"model": MODEL, **fields}
            ) as stream:
                async for chunk in stream:
                    text += chunk.choices[0].delta.content or ""
                    number += 1
                    if number == chunks:
                        break
            return text

        return self._run(work)

    def close(self) -> None:
        """Nothing is left open."""


ChatClient = SyncClient | AsyncClient
