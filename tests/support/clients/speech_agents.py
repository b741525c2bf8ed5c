"""Runs one speech client of an agent framework, with the Python of ``.venv-clients``.

argv: the client. stdin: ``base_url``, ``api_key``, ``voice``, ``text``, as JSON. stdout: the length
of the sound in seconds by format, or the error that it reports, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

FORMATS = ("mp3", "wav", "pcm", "opus", "flac")


async def livekit(script: dict[str, str]) -> dict[str, Any]:
    """Speak with the TTS plugin of LiveKit Agents."""
    from livekit.plugins import openai

    seconds = {}
    for audio_format in FORMATS:
        speech = openai.TTS(
            base_url=script["base_url"],
            api_key=script["api_key"],
            voice=script["voice"],
            model="tts-1",
            response_format=audio_format,
        )
        seconds[audio_format] = 0.0
        async with speech.synthesize(script["text"]) as stream:
            async for event in stream:
                frame = event.frame
                seconds[audio_format] += frame.samples_per_channel / frame.sample_rate
        await speech.aclose()
    return seconds


async def pipecat(script: dict[str, str]) -> dict[str, Any]:
    """Speak with Pipecat's OpenAI service, at its own speed and at twice that."""
    from pipecat.frames.frames import EndFrame, ErrorFrame, TTSAudioRawFrame, TTSSpeakFrame
    from pipecat.pipeline.pipeline import Pipeline
    from pipecat.pipeline.runner import PipelineRunner
    from pipecat.pipeline.task import PipelineTask
    from pipecat.processors.frame_processor import FrameProcessor
    from pipecat.services.openai.tts import OpenAITTSService

    class Listener(FrameProcessor):  # type: ignore[misc]
        """Keeps the sound and the errors."""

        sound = b""
        error = ""

        async def process_frame(self, frame: Any, direction: Any) -> None:
            await super().process_frame(frame, direction)
            if isinstance(frame, ErrorFrame):
                self.error = frame.error
            if isinstance(frame, TTSAudioRawFrame):
                self.sound += frame.audio
            await self.push_frame(frame, direction)

    found: dict[str, Any] = {}
    for name, speed in (("usual", None), ("fast", 2.0)):
        settings = OpenAITTSService.Settings(
            voice=script["voice"], model="tts-1", speed=speed, instructions="Speak clearly."
        )
        service = OpenAITTSService(
            base_url=script["base_url"], api_key=script["api_key"], settings=settings
        )
        listener = Listener()
        task = PipelineTask(Pipeline([service, listener]))
        await task.queue_frames([TTSSpeakFrame(script["text"]), EndFrame()])
        await PipelineRunner(handle_sigint=False).run(task)
        if listener.error:
            return {"error": listener.error}
        found[name] = len(listener.sound) / 2 / 24_000
    return found


if __name__ == "__main__":
    client = {"livekit": livekit, "pipecat": pipecat}[sys.argv[1]]
    print(json.dumps(asyncio.run(client(json.load(sys.stdin)))))
