"""Has an agent of a framework speak, be interrupted and speak again, with the Python of ``.venv-clients``.

argv: the framework. stdin, as JSON: ``url``, ``api_key``, ``voice``, ``texts`` and ``seconds``. The first
text has no end, as one that a model still writes, and is interrupted when so many seconds of it were played;
then the second is spoken. stdout, as JSON: what the agent's history has of each.

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


async def reach(moment: float) -> None:
    """Return when the clock (``time.monotonic``) is at ``moment``."""
    await asyncio.sleep(max(0.0, moment - time.monotonic()))


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
            self.began = self.pushed = 0.0
            self.begun = asyncio.Event()
            self.ending: asyncio.Task[None] | None = None

        async def capture_frame(self, frame: rtc.AudioFrame) -> None:
            await super().capture_frame(frame)
            if not self.pushed:
                self.began = time.monotonic()
                self.begun.set()
                self.on_playback_started(created_at=time.time())
            self.pushed += frame.duration

        def flush(self) -> None:
            super().flush()
            if self.pushed:
                self.ending = asyncio.create_task(self._end())

        async def _end(self) -> None:
            await reach(self.began + self.pushed)
            self._finished(interrupted=False)

        def clear_buffer(self) -> None:
            if self.ending is not None:
                self.ending.cancel()
            if self.pushed:
                self._finished(interrupted=True)

        def _finished(self, *, interrupted: bool) -> None:
            position = min(self.pushed, time.monotonic() - self.began)
            self.pushed, self.ending = 0.0, None
            self.on_playback_finished(playback_position=position, interrupted=interrupted)

    return Loudspeaker()


async def livekit(script: dict[str, Any]) -> list[str]:
    import livekit_tts
    from livekit.agents import Agent, AgentSession
    from livekit.agents.voice.transcription.synchronizer import TranscriptSynchronizer

    speaker = livekit_loudspeaker()
    synchronizer = TranscriptSynchronizer(next_in_chain_audio=speaker, next_in_chain_text=None)
    speech = livekit_tts.SvcTTS(url=script["url"], api_key=script["api_key"], voice=script["voice"])
    session: AgentSession[None] = AgentSession(tts=speech, use_tts_aligned_transcript=True)
    session.output.audio = synchronizer.audio_output
    session.output.transcription = synchronizer.text_output
    await session.start(Agent(instructions="Speak."))

    async def unfinished() -> AsyncIterator[str]:
        for word in script["texts"][0].split():
            yield f"{word} "
        await asyncio.Event().wait()

    first = session.say(unfinished())
    await speaker.begun.wait()
    await reach(time.monotonic() + script["seconds"])
    await session.interrupt()
    await first.wait_for_playout()
    await session.say(script["texts"][1]).wait_for_playout()
    heard = [item.text_content for item in session.history.items if item.type == "message"]
    await session.aclose()
    await speech.aclose()
    return heard


async def pipecat(script: dict[str, Any]) -> list[str]:
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
            self.due = (self.due or time.monotonic()) + len(frame.audio) / 2 / frame.sample_rate
            await reach(self.due)
            return True

    speaker = Loudspeaker(TransportParams(audio_out_enabled=True))
    context = LLMContext()
    speech = pipecat_tts.SvcTTSService(
        url=script["url"], api_key=script["api_key"], voice=script["voice"]
    )
    assistant = LLMContextAggregatorPair(context).assistant()
    task = PipelineTask(Pipeline([speech, speaker, assistant]))
    running = asyncio.create_task(PipelineRunner(handle_sigint=False).run(task))

    await task.queue_frame(LLMFullResponseStartFrame())
    for word in script["texts"][0].split():
        await task.queue_frame(LLMTextFrame(f"{word} "))
    await speaker.begun.wait()
    await reach(time.monotonic() + script["seconds"])
    speaker.due = 0.0
    await task.queue_frame(InterruptionFrame())
    await task.queue_frame(TTSSpeakFrame(script["texts"][1]))
    await task.stop_when_done()
    await running
    return [message["content"] for message in context.get_messages()]


if __name__ == "__main__":
    agent = {"livekit": livekit, "pipecat": pipecat}[sys.argv[1]]
    print(json.dumps(asyncio.run(agent(json.load(sys.stdin)))))
