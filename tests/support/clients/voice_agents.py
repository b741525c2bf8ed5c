"""Has an agent of a framework speak, be interrupted and speak again, with the Python of ``.venv-clients``.

argv: the framework. stdin, as JSON: ``url``, ``api_key`` and ``conversations``, each with a ``voice`` and
``turns``: a ``text``, and the ``seconds`` of it that are played before it is interrupted. Such a text has
no end, as one that a model still writes; with 0 it is interrupted before its first sound. Without
``seconds`` the text is spoken whole. stdout, as JSON: what the agent's history has of each conversation.

The adapters are those of docs/examples/agents, whose folder is in PYTHONPATH; the loudspeaker is a clock.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from svc_session import SAMPLE_RATE

_A_MOMENT = 0.1


async def reach(moment: float) -> None:
    """Return when the clock (``time.monotonic``) is at ``moment``."""
    await asyncio.sleep(max(0.0, moment - time.monotonic()))


async def played(begun: asyncio.Event, seconds: float) -> None:
    """Return when ``seconds`` were played since ``begun``; for 0 after a moment in which no engine
    that takes its time has a sound yet."""
    if seconds:
        await begun.wait()
    await reach(time.monotonic() + (seconds or _A_MOMENT))


def livekit_loudspeaker() -> Any:
    from livekit import rtc
    from livekit.agents.voice.io import AudioOutput, AudioOutputCapabilities

    class Loudspeaker(AudioOutput):  # type: ignore[misc]
        """Plays in real time."""

        def __init__(self) -> None:
            super().__init__(
                label="clock",
                capabilities=AudioOutputCapabilities(pause=False),
                sample_rate=SAMPLE_RATE,
            )
            self.due = self.pushed = 0.0
            self.begun = asyncio.Event()
            self.ending: asyncio.Task[None] | None = None

        async def capture_frame(self, frame: rtc.AudioFrame) -> None:
            await super().capture_frame(frame)
            if not self.pushed:
                self.begun.set()
                self.on_playback_started(created_at=time.time())
            self.pushed += frame.duration
            self.due = max(self.due, time.monotonic()) + frame.duration

        def flush(self) -> None:
            super().flush()
            if self.pushed:
                self.ending = asyncio.create_task(self._end())

        async def _end(self) -> None:
            await reach(self.due)
            self._finished(interrupted=False)

        def clear_buffer(self) -> None:
            if self.ending is not None:
                self.ending.cancel()
            if self.pushed:
                self._finished(interrupted=True)

        def _finished(self, *, interrupted: bool) -> None:
            position = self.pushed - max(0.0, self.due - time.monotonic())
            self.due, self.pushed, self.ending = 0.0, 0.0, None
            self.begun.clear()
            self.on_playback_finished(playback_position=position, interrupted=interrupted)

    return Loudspeaker()


async def livekit(
    url: str, api_key: str, voice: str, turns: list[dict[str, Any]], *, ssml: bool = False
) -> list[str]:
    import livekit_tts
    from livekit.agents import Agent, AgentSession
    from livekit.agents.voice.transcription.synchronizer import TranscriptSynchronizer

    speaker = livekit_loudspeaker()
    synchronizer = TranscriptSynchronizer(next_in_chain_audio=speaker, next_in_chain_text=None)
    speech = livekit_tts.SvcTTS(url=url, api_key=api_key, voice=voice, ssml=ssml)
    session: AgentSession[None] = AgentSession(tts=speech, use_tts_aligned_transcript=True)
    session.output.audio = synchronizer.audio_output
    session.output.transcription = synchronizer.text_output
    await session.start(Agent(instructions="Speak."))

    async def unfinished(text: str) -> AsyncIterator[str]:
        for word in text.split():
            yield f"{word} "
        await asyncio.Event().wait()

    for turn in turns:
        if (seconds := turn["seconds"]) is None:
            await session.say(turn["text"]).wait_for_playout()
            continue
        saying = session.say(unfinished(turn["text"]))
        await played(speaker.begun, seconds)
        await session.interrupt()
        await saying.wait_for_playout()
    heard = [item.text_content for item in session.history.items if item.type == "message"]
    await session.aclose()
    await speech.aclose()
    return heard


async def pipecat(
    url: str, api_key: str, voice: str, turns: list[dict[str, Any]], *, ssml: bool = False
) -> list[str]:
    import pipecat_tts
    from pipecat.frames.frames import (
        InterruptionFrame,
        LLMFullResponseStartFrame,
        LLMTextFrame,
        OutputAudioRawFrame,
        StartFrame,
        TTSSpeakFrame,
    )
    from pipecat.pipeline.pipeline import Pipeline
    from pipecat.pipeline.runner import PipelineRunner
    from pipecat.pipeline.task import PipelineTask
    from pipecat.processors.aggregators.llm_context import LLMContext
    from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
    from pipecat.transports.base_output import BaseOutputTransport
    from pipecat.transports.base_transport import TransportParams

    class Loudspeaker(BaseOutputTransport):  # type: ignore[misc]
        """Plays in real time."""

        due = 0.0
        begun = asyncio.Event()

        async def start(self, frame: StartFrame) -> None:
            await super().start(frame)
            await self.set_transport_ready(frame)

        async def write_audio_frame(self, frame: OutputAudioRawFrame) -> bool:
            self.begun.set()
            seconds = len(frame.audio) / 2 / frame.sample_rate
            self.due = max(self.due, time.monotonic()) + seconds
            await reach(self.due)
            return True

    speaker = Loudspeaker(TransportParams(audio_out_enabled=True))
    context = LLMContext()
    speech = pipecat_tts.SvcTTSService(url=url, api_key=api_key, voice=voice, ssml=ssml)
    assistant = LLMContextAggregatorPair(context).assistant()
    task = PipelineTask(Pipeline([speech, speaker, assistant]))
    running = asyncio.create_task(PipelineRunner(handle_sigint=False).run(task))

    for turn in turns:
        if (seconds := turn["seconds"]) is None:
            await task.queue_frame(TTSSpeakFrame(turn["text"]))
            continue
        speaker.begun.clear()
        await task.queue_frame(LLMFullResponseStartFrame())
        for word in turn["text"].split():
            await task.queue_frame(LLMTextFrame(f"{word} "))
        await played(speaker.begun, seconds)
        speaker.due = 0.0
        await task.queue_frame(InterruptionFrame())
    await task.stop_when_done()
    await running
    return [message["content"] for message in context.get_messages()]


async def all_of(framework: str, script: dict[str, Any]) -> list[list[str]]:
    agent = {"livekit": livekit, "pipecat": pipecat}[framework]
    return [
        await agent(script["url"], script["api_key"], **conversation)
        for conversation in script["conversations"]
    ]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(all_of(sys.argv[1], json.load(sys.stdin)))))
