"""Creates, lists and deletes the rows of clones, each in one transaction.

The database decides every race: slots and names are unique (``speech.models``). Everything here
blocks on the database and belongs in a thread.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from django.db import IntegrityError, transaction

from core import clock
from core.errors import InternalError
from core.ids import uuid7_hex
from speech.engines import StyleMix
from speech.engines.espeak.profile import UnreadableProfile
from speech.errors import MOST_CLONES, CloneNotFound, NameTaken, TooManyClones
from speech.models import CloneAudio, CloneUpload, VoiceClone

CLONE_ID = re.compile(r"voice_[0-9a-f]{32}", re.ASCII)
"""The form of clone ids; other ids need no query."""

MIX: Final = "neural"
"""The key in a clone's profile under which its mix is; releases without mixes skip it, and a deletion
empties the profile as a whole."""

_OLDEST: Final = 20
_MOST_TRIES = 50
"""Each failed attempt means that another request succeeded, so this many are enough."""


@dataclass(frozen=True, slots=True)
class NewClone:
    """A clone before it has an id and a slot."""

    organization_id: str
    api_key_id: str
    name: str
    name_key: str
    reference_seconds: float
    profile: dict[str, Any]
    sealed: bytes


def existing(organization_id: str) -> list[VoiceClone]:
    """The organization's clones, oldest first."""
    rows = VoiceClone.objects.filter(organization_id=organization_id, deleted_at=None)
    return list(rows.order_by("created_at", "pk"))


def find(clone_id: str, organization_id: str) -> VoiceClone | None:
    """The organization's clone with that id, or None."""
    if CLONE_ID.fullmatch(clone_id) is None:
        return None
    return VoiceClone.objects.filter(
        pk=clone_id, organization_id=organization_id, deleted_at=None
    ).first()


def require_room(organization_id: str, name_key: str, reserved: Collection[str]) -> set[int]:
    """Return the free slots of the organization, at least one.

    ``reserved`` are name keys that no clone may have. Raises ``NameTaken`` and ``TooManyClones``.
    """
    taken = dict(
        VoiceClone.objects.filter(organization_id=organization_id, deleted_at=None).values_list(
            "slot", "name_key"
        )
    )
    if name_key in reserved or name_key in taken.values():
        raise NameTaken
    free = set(range(1, MOST_CLONES + 1)) - set(taken)
    if not free:
        raise TooManyClones
    return free


def add(new: NewClone, reserved: Collection[str]) -> VoiceClone:
    """Insert the clone with its audio. Raises ``NameTaken`` and ``TooManyClones``."""
    for _ in range(_MOST_TRIES):
        free = require_room(new.organization_id, new.name_key, reserved)
        # Chosen at random, so that concurrent requests spread over the free slots.
        slot = random.choice(sorted(free))  # noqa: S311  # nothing secret
        try:
            return _inserted(new, slot)
        except IntegrityError:
            # Another request took the slot or the name; the next attempt finds out which.
            continue
    raise InternalError


def _inserted(new: NewClone, slot: int) -> VoiceClone:
    with transaction.atomic():
        clone = VoiceClone.objects.create(
            id=f"voice_{uuid7_hex()}",
            organization_id=new.organization_id,
            api_key_id=new.api_key_id,
            name=new.name,
            name_key=new.name_key,
            slot=slot,
            reference_seconds=new.reference_seconds,
            profile=new.profile,
        )
        CloneAudio.objects.create(clone=clone, sealed=new.sealed)
    return clone


def delete(clone_id: str, organization_id: str) -> None:
    """Delete the clone: keep a tombstone without audio and make its copies due for deletion.

    Raises ``CloneNotFound`` unless it is an existing clone of the organization.
    """
    if CLONE_ID.fullmatch(clone_id) is None:
        raise CloneNotFound
    moment = clock.now()
    with transaction.atomic():
        # One statement decides which request deletes it; it waits for an upload being recorded.
        deleted = VoiceClone.objects.filter(
            pk=clone_id, organization_id=organization_id, deleted_at=None
        ).update(deleted_at=moment, slot=None, profile={})
        if not deleted:
            raise CloneNotFound
        CloneAudio.objects.filter(clone_id=clone_id).delete()
        CloneUpload.objects.filter(clone_id=clone_id).update(delete_after=moment)


class _Mixed(msgspec.Struct, frozen=True):
    """What of a profile the neural engine speaks with."""

    mix: StyleMix | None = msgspec.field(default=None, name=MIX)


def stored_mix(profile: bytes) -> StyleMix | None:
    """The mix in the JSON of a clone's profile; None before it is made. Raises ``UnreadableProfile``."""
    try:
        return msgspec.json.decode(profile, type=_Mixed).mix
    except msgspec.DecodeError as error:
        raise UnreadableProfile(str(error)) from None


def without_mix(but: Collection[str]) -> str | None:
    """The id of one of the oldest clones that have no mix; none of ``but``."""
    rows = VoiceClone.objects.filter(deleted_at=None).exclude(profile__has_key=MIX)
    oldest = rows.exclude(pk__in=but).order_by("created_at").values_list("pk", flat=True)
    # At random, so that hosts that share a database seldom make the same one.
    return random.choice(found) if (found := list(oldest[:_OLDEST])) else None  # noqa: S311


def keep_mix(clone_id: str, mix: StyleMix) -> bool:
    """Add ``mix`` to the clone's profile, unless it was deleted; return whether it was added."""
    with transaction.atomic():
        clone = VoiceClone.objects.select_for_update().filter(pk=clone_id, deleted_at=None).first()
        if clone is None:
            return False
        clone.profile[MIX] = msgspec.to_builtins(mix)
        clone.save(update_fields=["profile"])
    return True
