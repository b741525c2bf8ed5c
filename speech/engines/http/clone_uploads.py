"""Uploads and deletes reference clips on a backend that needs them beforehand.

The backend gets a random name for a clone, so that it learns nothing of the account and no upload
can replace another's.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol
from urllib.parse import quote

from speech.engines import EngineError
from speech.engines.http.backend import BackendRef
from speech.engines.http.client import BackendCalls, BackendPost, Timeouts

_ESCAPES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
"""As the HTML standard escapes names ("Multipart form data")."""


def form(
    fields: Mapping[str, str], file_field: str, file: bytes, file_name: str
) -> tuple[bytes, str]:
    """Return a form of ``fields`` and then a WAV ``file``, and its media type with the boundary."""
    boundary = f"svc-{secrets.token_hex(16)}"
    parts = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="{_escaped(name)}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    parts.append(
        f'--{boundary}\r\ncontent-disposition: form-data; name="{_escaped(file_field)}"; '
        f'filename="{_escaped(file_name)}"\r\ncontent-type: audio/wav\r\n\r\n'
    )
    body = b"".join(["".join(parts).encode(), file, f"\r\n--{boundary}--\r\n".encode()])
    return body, f"multipart/form-data; boundary={boundary}"


def _escaped(name: str) -> str:
    return name.translate(_ESCAPES)


log = logging.getLogger(__name__)

RENEWAL_SECONDS: Final = 60.0
"""The shortest time between two uploads of a clip that the backend reports as unknown."""

_CLOSE_SECONDS: Final = 5.0


class CloneClips(Protocol):
    """The store of reference clips, and the record of their copies on backends."""

    async def clip(self, clone_id: str) -> bytes:
        """The canonical WAV of a clone. Raises ``EngineError`` when the clone was deleted."""

    async def upload_name(self, clone_id: str, backend_id: str) -> str | None:
        """The clone's name on the backend, or None before its upload."""

    async def uploaded(self, clone_id: str, backend_id: str, name: str) -> None:
        """Store the name, in place of an earlier one. Raises ``EngineError`` when the clone was
        deleted meanwhile."""


class Uploads:
    """The uploads to one backend. Concurrent requests for the same clip share one upload."""

    def __init__(self, clips: CloneClips, calls: BackendCalls) -> None:
        self._clips = clips
        self._calls = calls
        self._running: dict[str, asyncio.Task[str]] = {}
        self._renewed: dict[str, float] = {}

    async def ensure(self, backend: BackendRef, clone_id: str) -> str:
        """Return the clone's name on ``backend``, after an upload if there was none yet.

        Raises ``EngineError`` when the clone was deleted or the backend refuses the clip.
        """
        if (running := self._running.get(clone_id)) is not None:
            return await asyncio.shield(running)
        known = await self._clips.upload_name(clone_id, backend.id)
        return known or await self._shared(clone_id, lambda: self._upload_once(backend, clone_id))

    async def reupload(self, backend: BackendRef, clone_id: str, unknown: str) -> str | None:
        """Upload again and return the new name in place of ``unknown``, which the backend lost.

        None within ``RENEWAL_SECONDS`` of the last time: then it refuses for another reason.
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
            # Another caller may have begun the upload, or even ended it, since the check above.
            if (running := self._running.get(clone_id)) is not None:
                return await asyncio.shield(running)
            known = await self._clips.upload_name(clone_id, backend.id)
            return known if known != unknown else None
        self._renewed[clone_id] = now
        return await self._shared(clone_id, lambda: self._reupload(backend, clone_id, unknown))

    async def delete_upload(self, backend: BackendRef, name: str) -> None:
        """Delete an upload on ``backend``; a missing one counts as success."""
        timeouts = Timeouts(backend.first_byte_seconds, backend.total_seconds)
        await self._calls.delete(backend, f"{backend.upload_path}/{quote(name, safe='')}", timeouts)

    async def close(self) -> None:
        """Wait for running uploads, so that each is recorded or deleted."""
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
        # The upload outlives a cancelled caller: it must be recorded.
        return await asyncio.shield(task)

    def _ended(self, clone_id: str, task: asyncio.Future[str]) -> None:
        del self._running[clone_id]
        if not task.cancelled():
            task.exception()  # marks it as retrieved when every caller was cancelled

    async def _upload_once(self, backend: BackendRef, clone_id: str) -> str:
        # Looked up again: another caller's upload may have ended just before.
        known = await self._clips.upload_name(clone_id, backend.id)
        return known or await self._upload(backend, clone_id)

    async def _reupload(self, backend: BackendRef, clone_id: str, unknown: str) -> str:
        name = await self._upload(backend, clone_id)
        await self._delete_leftover(backend, unknown)
        return name

    async def _upload(self, backend: BackendRef, clone_id: str) -> str:
        clip = await self._clips.clip(clone_id)
        name = "svc_" + secrets.token_hex(16)
        try:
            await self._send(backend, name, clip)
            await self._clips.uploaded(clone_id, backend.id, name)
        except BaseException:
            # The upload may have arrived all the same, without a record of it.
            await asyncio.shield(self._delete_leftover(backend, name))
            raise
        return name

    async def _send(self, backend: BackendRef, name: str, clip: bytes) -> None:
        fields = {**backend.upload_extra_fields, backend.upload_name_field: name}
        body, content_type = form(
            {field: str(value) for field, value in fields.items()},
            backend.clone_field,
            clip,
            f"{name}.wav",
        )
        message = BackendPost(backend.upload_path, body, content_type)
        timeouts = Timeouts(backend.first_byte_seconds, backend.total_seconds)
        response = await self._calls.post(backend, message, timeouts)
        response.close()

    async def _delete_leftover(self, backend: BackendRef, name: str) -> None:
        try:
            await self.delete_upload(backend, name)
        except EngineError:
            log.error(
                "speech backend %s: the upload %s may still be there; delete it by hand",
                backend.name,
                name,
            )
