"""The voices of this process: global voices from memory, clones from the database.

A worker holds one ``VoiceSnapshot`` and replaces it as a whole when the stamp of the voices moves
(``accounts.changes``). Clones are many and private, and every worker has to see a deletion at once:
so each use of a clone makes one query by its primary key.
"""

from __future__ import annotations

import logging

import msgspec

from accounts.changes import VOICES, ChangeWatcher, watcher
from accounts.keys.principal import Principal
from accounts.models import Organization
from accounts.snapshots import SnapshotHolder
from core.database.threads import threads
from core.errors import InternalError
from speech.engines.espeak.profile import CloneProfile, UnreadableProfile
from speech.errors import UnknownVoice
from speech.models import Language, VoiceClone
from speech.voices.clones.rows import CLONE_ID, stored_mix
from speech.voices.snapshot import CloneRef, VoiceRef, VoiceSnapshot, read_snapshot

log = logging.getLogger(__name__)

CLONE_BASE_VOICE = "en-us"
"""The embedded voice to which a clone's profile is applied, also during calibration."""


class Voices(SnapshotHolder[VoiceSnapshot]):
    """The voices of this process and the backends that speak them."""

    def __init__(self, watcher: ChangeWatcher) -> None:
        super().__init__(watcher, VOICES, VoiceSnapshot())

    def read(self) -> VoiceSnapshot:
        return read_snapshot()

    async def resolve(self, voice_id: str, principal: Principal) -> VoiceRef:
        """Resolve ``voice_id`` for ``principal``; a global voice needs no query.

        Raises ``UnknownVoice`` for a voice that is absent, foreign, deleted or hidden from the
        plan, and ``InternalError`` when the database does not answer about a clone, or no voices could
        be read since the start: the voice may be there, and a client would believe that it is not.
        """
        snapshot = self.snapshot
        if (voice := snapshot.voices.get(voice_id)) is not None:
            if not voice.is_visible_to(principal.plan):
                raise UnknownVoice
            return voice.ref
        if not self.is_loaded:
            raise InternalError
        if CLONE_ID.fullmatch(voice_id) is None:
            raise UnknownVoice
        organization_id = principal.organization_id
        profile = await threads.run(lambda: _stored_profile(voice_id, organization_id))
        return _clone_ref(snapshot, voice_id, organization_id, profile)


def _stored_profile(clone_id: str, organization_id: str) -> bytes:
    """Read the profile of a clone of the organization. Raises ``UnknownVoice``."""
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
        # A backend gets the reference clip itself and needs no profile.
        measured = CloneProfile.from_json(profile) if backend is None else None
        mix = stored_mix(profile) if snapshot.clone_styles else None
    except UnreadableProfile:
        log.error("the profile of %s is not readable", clone_id)
        raise InternalError from None
    return VoiceRef(
        id=clone_id,
        language=Language.ENGLISH.value,
        engine_voice=CLONE_BASE_VOICE if backend is None else "",
        backend=backend,
        clone=CloneRef(clone_id, organization_id, measured, mix),
        neural_voice="" if mix is None else mix.styles[0][0],
    )


voices = Voices(watcher)
"""The voices of this process."""


def first_voice(organization: Organization) -> str | None:
    """Return the first global voice that the organization's plan has; None when there is none."""
    found = voices.current().voices
    return next(
        (name for name in sorted(found) if found[name].is_visible_to(organization.plan)), None
    )
