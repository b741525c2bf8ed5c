"""A speech service for Pipecat: one session a conversation, word times, interruptions.

    pip install pipecat-ai websockets
    tts = SvcTTSService(url="ws://127.0.0.1:8001", api_key="sk_...", voice="ava")

Words enter the conversation as they are heard, so that after an interruption the assistant knows what
it said.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any

from pipecat.frames.frames import ErrorFrame, Frame, TTSAudioRawFrame, TTSStoppedFrame
from pipecat.services.settings import TTSSettings
from pipecat.services.tts_service import TextAggregationMode, WebsocketTTSService
from svc_session import SAMPLE_RATE, Sound, SvcSession


class SvcTTSService(WebsocketTTSService):
    def __init__(
        self,
        *,
        url: str,
        api_key: str,
        voice: str = "ava",
        ssml: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(
            # The session finds the sentences itself, and words are pushed when they are heard.
            text_aggregation_mode=TextAggregationMode.TOKEN,
            push_text_frames=False,
            push_start_frame=True,
            stop_frame_timeout_s=30,
            sample_rate=SAMPLE_RATE,
            settings=TTSSettings(model=None, voice=voice, language=None),
            **options,
        )
        self._url, self._key, self._ssml = url, api_key, ssml
        self._session: SvcSession | None = None
        self._receiving: asyncio.Task[None] | None = None
        self._contexts: deque[str] = deque()
        """What Pipecat calls the utterances whose end was not received, in their order."""

    async def run_tts(self, text: str, context_id: str) -> AsyncGenerator[Frame | None, None]:
        if context_id not in self._contexts:
            self._contexts.append(context_id)
        try:
            await self._connect()
            await self._session.say(text)
            await self.start_tts_usage_metrics(text)
        except Exception as error:
            await self._disconnect()
            yield ErrorFrame(error=f"svc: {error}")
            yield TTSStoppedFrame(context_id=context_id)
        yield None

    async def flush_audio(self, context_id: str | None = None) -> None:
        if self._session is not None and self._contexts:
            await self._session.end()

    async def on_audio_context_interrupted(self, context_id: str) -> None:
        if self._session is not None and self._contexts:
            self._contexts.clear()
            await self._session.interrupt()
        await super().on_audio_context_interrupted(context_id)

    async def _connect(self) -> None:
        if self._session is None:
            await super()._connect()
            await self._connect_websocket()
            self._receiving = self.create_task(self._receive_task_handler(self._report_error))

    async def _disconnect(self) -> None:
        await super()._disconnect()
        if self._receiving is not None:
            receiving, self._receiving = self._receiving, None
            await self.cancel_task(receiving)
        await self._disconnect_websocket()

    async def _connect_websocket(self) -> None:
        self._session = await SvcSession.open(
            self._url, self._key, self._settings.voice, ssml=self._ssml
        )
        self._websocket = self._session.connection
        await self._call_event_handler("on_connected")

    async def _disconnect_websocket(self) -> None:
        session, self._session, self._websocket = self._session, None, None
        self._contexts.clear()
        if session is not None:
            await session.close()
            await self._call_event_handler("on_disconnected")

    async def _receive_messages(self) -> None:
        async for event in self._session.events():
            if not self._contexts:
                continue
            context_id = self._contexts[0]
            if isinstance(event, Sound):
                heard = [(word.text, word.start) for word in event.words]
                await self.add_word_timestamps(heard, context_id)
                sound = TTSAudioRawFrame(event.pcm, SAMPLE_RATE, 1, context_id=context_id)
                await self.append_to_audio_context(context_id, sound)
            else:
                self._contexts.popleft()
                stopped = TTSStoppedFrame(context_id=context_id)
                await self.append_to_audio_context(context_id, stopped)
                await self.remove_audio_context(context_id)
