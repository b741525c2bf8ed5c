"""Reads reference clips for engines that need them, and records their copies on backends.

Callers have resolved the clone just before, so its organization was checked. A clip is held in
memory only while it is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from django.conf import settings
from django.db import transaction

from core.database.threads import threads
from core.errors import InternalError
from core.sealing import Cipher, Unreadable
from speech.engines import EngineError
from speech.models import CloneAudio, CloneUpload, VoiceClone

Found = TypeVar("Found")


def cipher() -> Cipher:
    """The cipher of this installation (``SVC_CLONE_KEYS``)."""
    return Cipher(settings.SVC_CLONE_KEYS)


class StoredClips:
    """The clips in the database, for ``speech.engines.http.engine``.

    Each method raises ``EngineError`` when the database does not answer.
    """

    async def clip(self, clone_id: str) -> bytes:
        """The canonical WAV. Raises ``EngineError`` when it was deleted or cannot be decrypted."""
        return await _queried(lambda: _opened(clone_id))

    async def upload_name(self, clone_id: str, backend_id: str) -> str | None:
        """The name of the clone's clip on the backend, or None."""
        copies = CloneUpload.objects.filter(
            clone_id=clone_id, backend_id=UUID(backend_id), clone__deleted_at=None
        )
        names = copies.order_by("created_at").values_list("upstream_name", flat=True)
        return await _queried(names.first)

    async def uploaded(self, clone_id: str, backend_id: str, name: str) -> None:
        """Record that the backend has the clip as ``name``.

        Raises ``EngineError`` when the clone was deleted meanwhile: delete the copy then.
        """
        await _queried(lambda: _record(clone_id, backend_id, name))


clips = StoredClips()
"""The clips of this process."""


@dataclass(slots=True)
class Resealed:
    """The result of ``reseal``; ``unreadable`` are ids of clones."""

    resealed: int
    kept: int
    unreadable: list[str]


def reseal() -> Resealed:
    """Encrypt every clip with the first of ``SVC_CLONE_KEYS`` that another one encrypted.

    Clips are changed one by one, so it can run while requests are served, and again after it was
    stopped. Raises ``django.db.Error``.
    """
    keys, found = cipher(), Resealed(0, 0, [])
    for clone_id in CloneAudio.objects.order_by("pk").values_list("pk", flat=True).iterator():
        clip = CloneAudio.objects.filter(pk=clone_id)
        if (sealed := clip.values_list("sealed", flat=True).first()) is None:
            continue  # the clone was deleted meanwhile
        try:
            again = keys.reseal(bytes(sealed))
        except Unreadable:
            found.unreadable.append(clone_id)
            continue
        if again is None:
            found.kept += 1
        else:
            found.resealed += clip.update(sealed=again)
    return found


def _opened(clone_id: str) -> bytes:
    sealed = CloneAudio.objects.filter(pk=clone_id).values_list("sealed", flat=True).first()
    if sealed is None:
        raise EngineError("The clone was deleted.")
    try:
        return cipher().open(bytes(sealed))
    except Unreadable:
        raise EngineError("The clone's clip cannot be read with SVC_CLONE_KEYS.") from None


def _record(clone_id: str, backend_id: str, name: str) -> None:
    with transaction.atomic():
        # Locked: a deletion either came before and is seen here, or comes after and sees the copy.
        clone = VoiceClone.objects.select_for_update().filter(pk=clone_id, deleted_at=None).first()
        if clone is None:
            raise EngineError("The clone was deleted.")
        CloneUpload.objects.create(clone=clone, backend_id=UUID(backend_id), upstream_name=name)


async def _queried(query: Callable[[], Found]) -> Found:
    try:
        return await threads.run(query)
    except InternalError:
        raise EngineError("The database did not answer about a clone.") from None
