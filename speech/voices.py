"""The voices of this process: global ones from memory, clones from the database.

A worker holds one ``VoiceSnapshot`` and replaces it as a whole when the stamp of the voices moves
(``accounts.changes``). Clones are many and private, and a deletion has to count at once on every
worker: so each use of one asks the database, once, by its primary key.
"""

from __future__ import annotations

import logging

import msgspec

from accounts.changes import VOICES, ChangeWatcher, watcher
from accounts.principal import Principal
from accounts.snapshots import SnapshotHolder
from speech.clones.profile import CloneProfile, UnreadableProfile
from speech.clones.registry import CLONE_ID
from speech.database import threads
from speech.errors import UnknownVoice
from speech.models import Language, VoiceClone
from speech.snapshot import CloneRef, VoiceRef, VoiceSnapshot, read_snapshot
from svc_project.lib.errors import InternalError

log = logging.getLogger(__name__)

CLONE_BASE_VOICE = "en-us"
"""The embedded voice that a clone's profile shapes; what calibration speaks with."""


class Voices(SnapshotHolder[VoiceSnapshot]):
    """The voices of this process and the backends that speak them."""

    def __init__(self, watcher: ChangeWatcher) -> None:
        super().__init__(watcher, VOICES, VoiceSnapshot())

    def read(self) -> VoiceSnapshot:
        return read_snapshot()

    async def resolve(self, voice_id: str, principal: Principal) -> VoiceRef:
        """The voice that ``voice_id`` names for ``principal``; a global one costs no query.

        Raises ``UnknownVoice`` for one that is absent, foreign, deleted or hidden from the plan,
        and ``InternalError`` when the database does not answer about a clone.
        """
        snapshot = self.snapshot
        if (voice := snapshot.voices.get(voice_id)) is not None:
            if not voice.is_visible_to(principal.plan):
                raise UnknownVoice
            return voice.ref
        if CLONE_ID.fullmatch(voice_id) is None:
            raise UnknownVoice
        organization_id = principal.organization_id
        profile = await threads.run(lambda: _stored_profile(voice_id, organization_id))
        return _clone_ref(snapshot, voice_id, organization_id, profile)


def _stored_profile(clone_id: str, organization_id: str) -> bytes:
    """The profile of an existing clone of the organization. Raises ``UnknownVoice``."""
    profile = (
        VoiceClone.objects.filter(pk=clone_id, organization_id=organization_id, deleted_at=None)
        .values_list("profile", flat=True)
        .first()
    )
    if profile is None:
        raise UnknownVoice
    return msgspec.json.encode(profile)


def _clone_ref(
    snapshot: VoiceSnapshot, clone_id: str, organization_id: str, profile: bytes
) -> VoiceRef:
    backend = snapshot.clone_backend
    try:
        # A backend hears the reference clip itself; what was measured on it is not needed then.
        measured = CloneProfile.from_json(profile) if backend is None else None
    except UnreadableProfile:
        log.error("the profile of %s is not readable", clone_id)
        raise InternalError from None
    return VoiceRef(
        id=clone_id,
        language=Language.ENGLISH.value,
        engine_voice=CLONE_BASE_VOICE if backend is None else "",
        backend=backend,
        clone=CloneRef(clone_id, organization_id, measured),
    )


voices = Voices(watcher)
"""The voices of this process."""
