"""The bytes of sound that one request or session holds in memory."""

from __future__ import annotations

from svc_project.lib.sharing.places import sound_bytes


class HeldSound:
    """Counts the sound of one request against its organization's share (``SVC_MAX_SOUND_BYTES``)."""

    def __init__(self, organization_id: str) -> None:
        self._organization_id = organization_id
        self._size = 0

    def take(self, size: int) -> None:
        """Hold ``size`` more bytes. Raises ``ServerOverloaded``; then takes nothing."""
        sound_bytes.take(size, self._organization_id)
        self._size += size

    def release(self, size: int) -> None:
        """Release ``size`` of the bytes."""
        sound_bytes.release(size, self._organization_id)
        self._size -= size

    def release_all(self) -> None:
        """Release the rest."""
        self.release(self._size)
