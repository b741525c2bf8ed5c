"""Reference clips for engines that ask for one, and the record of their copies elsewhere.

Whoever asks has resolved the clone just before, so its organization was checked. A clip is held
only while it is handed over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from django.conf import settings
from django.db import transaction

from speech.clones.storage import ClipCipher, UnreadableClip
from speech.database import threads
from speech.engines import EngineError
from speech.models import CloneAudio, CloneUpload, VoiceClone
from svc_project.lib.errors import InternalError

Found = TypeVar("Found")


def cipher() -> ClipCipher:
    """The cipher of this installation (``SVC_CLONE_KEYS``)."""
    return ClipCipher(settings.SVC_CLONE_KEYS)


class StoredClips:
    """The clips of the database, for ``speech.engines.openai_http``.

    Each method raises ``EngineError`` when the database does not answer.
    """

    async def clip(self, clone_id: str) -> bytes:
        """The canonical WAV. Raises ``EngineError`` when it is gone or cannot be decrypted."""
        return await _asked(lambda: _opened(clone_id))

    async def upload_name(self, clone_id: str, backend_id: str) -> str | None:
        """The name under which the backend has the existing clone's clip, or None."""
        copies = CloneUpload.objects.filter(
            clone_id=clone_id, backend_id=UUID(backend_id), clone__deleted_at=None
        )
        names = copies.order_by("created_at").values_list("upstream_name", flat=True)
        return await _asked(names.first)

    async def uploaded(self, clone_id: str, backend_id: str, name: str) -> None:
        """Put on record that the backend has the clip as ``name``.

        Raises ``EngineError`` when the clone is gone meanwhile: forget the copy then.
        """
        await _asked(lambda: _record(clone_id, backend_id, name))


clips = StoredClips()
"""Those of this process."""


def _opened(clone_id: str) -> bytes:
    sealed = CloneAudio.objects.filter(pk=clone_id).values_list("sealed", flat=True).first()
    if sealed is None:
        raise EngineError("The clone is gone.")
    try:
        return cipher().open(bytes(sealed))
    except UnreadableClip:
        raise EngineError("The clone's clip cannot be read with SVC_CLONE_KEYS.") from None


def _record(clone_id: str, backend_id: str, name: str) -> None:
    with transaction.atomic():
        # Locked, so that a deletion comes before and is seen, or after and sees the copy.
        clone = VoiceClone.objects.select_for_update().filter(pk=clone_id, deleted_at=None).first()
        if clone is None:
            raise EngineError("The clone is gone.")
        CloneUpload.objects.create(clone=clone, backend_id=UUID(backend_id), upstream_name=name)


async def _asked(ask: Callable[[], Found]) -> Found:
    try:
        return await threads.run(ask)
    except InternalError:
        raise EngineError("The database did not answer about a clone.") from None
