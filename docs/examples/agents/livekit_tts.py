"""A speech plugin for LiveKit Agents: one session a conversation, word times, interruptions.

    pip install livekit-agents websockets
    speech = SvcTTS(url="ws://127.0.0.1:8001", api_key="sk_...", voice="ava")
    session = AgentSession(tts=speech, use_tts_aligned_transcript=True)

With the aligned transcript the conversation's history has, after an interruption, what was heard.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from livekit.agents import APIConnectionError, APIConnectOptions, tts, utils
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, TimedString
from svc_session import SAMPLE_RATE, Sound, SvcSession
from websockets.exceptions import ConnectionClosed, WebSocketException


class SvcTTS(tts.TTS):
    def __init__(self, *, url: str, api_key: str, voice: str = "ava", ssml: bool = False) -> None:
        super().__init__(
            capabilities=tts.TTSCapabilities(streaming=True, aligned_transcript=True),
            sample_rate=SAMPLE_RATE,
            num_channels=1,
        )
        self._url, self._key, self._voice, self._ssml = url, api_key, voice, ssml
        self._session: SvcSession | None = None
        self._speaking = asyncio.Lock()

    def synthesize(
        self, text: str, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.ChunkedStream:
        return self._synthesize_with_stream(text, conn_options=conn_options)

    def stream(
        self, *, conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS
    ) -> tts.SynthesizeStream:
        return SvcStream(tts=self, conn_options=conn_options)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def speak(self, stream: SvcStream, emitter: tts.AudioEmitter) -> None:
        """Speak one utterance in the session, which is opened first where there is none."""
        async with self._speaking:
            try:
                if self._session is None:
                    self._session = await SvcSession.open(
                        self._url, self._key, self._voice, ssml=self._ssml
                    )
                await self._speak(self._session, stream, emitter)
            except asyncio.CancelledError:
                # The listener interrupted: the session stays for the next utterance.
                if self._session is not None:
                    with suppress(ConnectionClosed):
                        await self._session.interrupt()
                raise
            except (WebSocketException, OSError, RuntimeError) as error:
                self._session = None
                raise APIConnectionError(f"svc: {error}") from error

    async def _speak(
        self, session: SvcSession, stream: SvcStream, emitter: tts.AudioEmitter
    ) -> None:
        telling = asyncio.create_task(stream.tell(session))
        try:
            async for event in session.events():
                if not isinstance(event, Sound):
                    return
                for word in event.words:
                    emitter.push_timed_transcript(
                        TimedString(f"{word.text} ", start_time=word.start, end_time=word.end)
                    )
                emitter.push(event.pcm)
            raise RuntimeError("the session ended")
        finally:
            await utils.aio.cancel_and_wait(telling)


class SvcStream(tts.SynthesizeStream):
    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        output_emitter.initialize(
            request_id=utils.shortuuid(),
            sample_rate=SAMPLE_RATE,
            num_channels=1,
            mime_type="audio/pcm",
            stream=True,
        )
        output_emitter.start_segment(segment_id=utils.shortuuid())
        await self._tts.speak(self, output_emitter)
        output_emitter.end_segment()

    async def tell(self, session: SvcSession) -> None:
        """Pass on the text as it comes, to its end."""
        async for piece in self._input_ch:
            if isinstance(piece, str):
                self._mark_started()
                await session.say(piece)
        await session.end()
