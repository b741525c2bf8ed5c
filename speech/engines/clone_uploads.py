"""Reference clips on a backend that wants them beforehand: put there once, and taken back.

The backend knows a clone by a random name, so that it learns nothing of the account and no upload
can replace another's.
"""

from __future__ import annotations

import asyncio
import io
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Final, Protocol
from urllib.parse import quote

import aiohttp

from speech.engines import EngineError
from speech.engines.backend_calls import BackendCalls, Message, Patience
from speech.snapshot import BackendRef

log = logging.getLogger(__name__)

RENEWAL_SECONDS: Final = 60.0
"""A clip that the backend says it does not know is uploaded again at most this often."""

_CLOSE_SECONDS: Final = 5.0


class CloneClips(Protocol):
    """Where reference clips are kept, and what is known of their copies elsewhere."""

    async def clip(self, clone_id: str) -> bytes:
        """The canonical WAV of an existing clone; raises ``EngineError`` when it is gone."""

    async def upload_name(self, clone_id: str, backend_id: str) -> str | None:
        """The name that the clone has on the backend, if it was uploaded there."""

    async def uploaded(self, clone_id: str, backend_id: str, name: str) -> None:
        """Remember the name, in place of an earlier one; raises ``EngineError`` when the clone is
        gone meanwhile."""


class Uploads:
    """The uploads to one backend. Those who need the same clip at once share one upload."""

    def __init__(self, clips: CloneClips, calls: BackendCalls) -> None:
        self._clips = clips
        self._calls = calls
        self._running: dict[str, asyncio.Task[str]] = {}
        self._renewed: dict[str, float] = {}

    async def name(self, backend: BackendRef, clone_id: str) -> str:
        """The clone's name on ``backend``, where it is uploaded first if need be.

        Raises ``EngineError`` when the clone is gone or the backend does not take the clip.
        """
        if (running := self._running.get(clone_id)) is not None:
            return await asyncio.shield(running)
        known = await self._clips.upload_name(clone_id, backend.id)
        return known or await self._shared(clone_id, lambda: self._first(backend, clone_id))

    async def renewed(self, backend: BackendRef, clone_id: str, unknown: str) -> str | None:
        """Another name in place of ``unknown``, which the backend says it does not know.

        None when that was tried a short while ago: then it refuses for another reason.
        """
        if (running := self._running.get(clone_id)) is not None:
            return await asyncio.shield(running)
        known = await self._clips.upload_name(clone_id, backend.id)
        if known is not None and known != unknown:
            return known
        now = asyncio.get_running_loop().time()
        self._renewed = {
            each: at for each, at in self._renewed.items() if now - at < RENEWAL_SECONDS
        }
        if clone_id in self._renewed:
            # Another caller may have begun it, or even ended it, since the look above.
            if (running := self._running.get(clone_id)) is not None:
                return await asyncio.shield(running)
            known = await self._clips.upload_name(clone_id, backend.id)
            return known if known != unknown else None
        self._renewed[clone_id] = now
        return await self._shared(clone_id, lambda: self._again(backend, clone_id, unknown))

    async def forget(self, backend: BackendRef, name: str) -> None:
        """Have ``backend`` delete an upload; one that it does not have is a success."""
        patience = Patience(backend.first_byte_seconds, backend.total_seconds)
        await self._calls.delete(backend, f"{backend.upload_path}/{quote(name, safe='')}", patience)

    async def close(self) -> None:
        """Let running uploads end, so that each is remembered or taken back."""
        if self._running:
            _, late = await asyncio.wait(list(self._running.values()), timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _shared(self, clone_id: str, upload: Callable[[], Awaitable[str]]) -> str:
        task = self._running.get(clone_id)
        if task is None:
            task = asyncio.ensure_future(upload())
            self._running[clone_id] = task
            task.add_done_callback(lambda done: self._ended(clone_id, done))
        # The upload outlives a caller who leaves: what has begun must be remembered.
        return await asyncio.shield(task)

    def _ended(self, clone_id: str, task: asyncio.Future[str]) -> None:
        del self._running[clone_id]
        if not task.cancelled():
            task.exception()  # marks it as seen where every caller has gone

    async def _first(self, backend: BackendRef, clone_id: str) -> str:
        # Looked up again: a caller may come here just after another one's upload has ended.
        known = await self._clips.upload_name(clone_id, backend.id)
        return known or await self._upload(backend, clone_id)

    async def _again(self, backend: BackendRef, clone_id: str, unknown: str) -> str:
        name = await self._upload(backend, clone_id)
        await self._take_back(backend, unknown)
        return name

    async def _upload(self, backend: BackendRef, clone_id: str) -> str:
        clip = await self._clips.clip(clone_id)
        name = "svc_" + secrets.token_hex(16)
        try:
            await self._send(backend, name, clip)
            await self._clips.uploaded(clone_id, backend.id, name)
        except BaseException:
            # It may have arrived all the same, and nobody would know of it.
            await asyncio.shield(self._take_back(backend, name))
            raise
        return name

    async def _send(self, backend: BackendRef, name: str, clip: bytes) -> None:
        form = aiohttp.FormData(default_to_multipart=True)
        for field, value in {
            **backend.upload_extra_fields,
            backend.upload_name_field: name,
        }.items():
            form.add_field(field, value if isinstance(value, str) else str(value))
        form.add_field(
            backend.clone_field, io.BytesIO(clip), filename=f"{name}.wav", content_type="audio/wav"
        )
        payload = form()
        message = Message(
            backend.upload_path, await payload.as_bytes(), payload.headers["Content-Type"]
        )
        patience = Patience(backend.first_byte_seconds, backend.total_seconds)
        response = await self._calls.post(backend, message, patience)
        response.close()

    async def _take_back(self, backend: BackendRef, name: str) -> None:
        try:
            await self.forget(backend, name)
        except EngineError:
            log.error(
                "speech backend %s: the upload %s may still be there; delete it by hand",
                backend.name,
                name,
            )
