"""The voices of this process: global ones from memory, clones from the database.

A worker holds one ``VoiceSnapshot`` and replaces it as a whole when the stamp of the voices moves
(``accounts.changes``). Clones are many and private, and a deletion has to count at once on every
worker: so each use of one asks the database, once, by its primary key.
"""

from __future__ import annotations

import logging
from threading import Lock

import msgspec
from django.db import Error

from accounts.changes import VOICES, ChangeWatcher, watcher
from accounts.principal import Principal
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

_FRESH_SECONDS = 5.0


class Voices:
    """This process's voices; ``snapshot`` is replaced as a whole and never changed."""

    def __init__(self, watcher: ChangeWatcher) -> None:
        self.snapshot = VoiceSnapshot()
        self._watcher = watcher
        self._loading = Lock()
        self._loaded = False
        watcher.subscribe(VOICES, self.load)

    def load(self) -> None:
        """Read voices and backends from the database.

        Raises ``django.db.Error`` and keeps the old snapshot when the database does not answer;
        the watcher then calls again.
        """
        # One at a time: an older reading must not take the place of a newer one.
        with self._loading:
            self.snapshot = read_snapshot()
        self._loaded = True

    def current(self) -> VoiceSnapshot:
        """The snapshot for a view that may wait.

        While the watcher runs it costs nothing. In a process without one (runserver, a shell) the
        voices are read anew each time.
        """
        if not (self._loaded and self._watcher.is_fresh(_FRESH_SECONDS)):
            try:
                self.load()
            except Error:
                if not self._loaded:
                    raise
        return self.snapshot

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
