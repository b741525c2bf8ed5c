"""What a worker holds of pronunciations: who has any, and those of accounts that spoke lately.

A change of any account's moves one stamp (``accounts.changes``); then each account's are read again
with its next text. An account that has none costs a look into a set.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from typing import Final

from accounts.changes import PRONUNCIATIONS, ChangeWatcher, watcher
from accounts.snapshots import SnapshotHolder
from core.database.threads import threads
from core.errors import InternalError
from speech.models import WordPronunciation
from speech.text.pronunciations import NO_PRONUNCIATIONS, Alphabet, Lexicon, Pronunciation
from speech.voices.pronunciations.rows import existing
from speech.voices.snapshot import VoiceRef

MOST_HELD: Final = 200
"""The most accounts whose pronunciations are held, at most 0.5 MB each."""


class Entries:
    """The pronunciations of one account, and the lexicon of each kind of voice."""

    def __init__(self, entries: Iterable[Pronunciation]) -> None:
        # Where two hold, the special one counts: IPA, then its own language, then the exact case.
        self._entries = sorted(
            entries,
            key=lambda one: (one.alphabet is Alphabet.IPA, one.language, one.case_sensitive),
            reverse=True,
        )
        self._lexicons: dict[tuple[str, bool], Lexicon] = {}

    def of(self, voice: VoiceRef) -> Lexicon:
        """The lexicon of ``voice``, without IPA where its engine takes none."""
        kind = voice.language, voice.takes_ipa
        found = self._lexicons.get(kind)
        if found is None:
            found = self._lexicons[kind] = Lexicon(
                one
                for one in self._entries
                if one.language in ("", voice.language)
                and (voice.takes_ipa or one.alphabet is not Alphabet.IPA)
            )
        return found


class Pronunciations(SnapshotHolder[frozenset[str]]):
    """The accounts that have pronunciations, by id, and the pronunciations of some. Belongs to one
    event loop, except for the snapshot."""

    def __init__(self, watcher: ChangeWatcher) -> None:
        super().__init__(watcher, PRONUNCIATIONS, frozenset())
        self._held: OrderedDict[str, tuple[frozenset[str], Entries]] = OrderedDict()
        """With the snapshot under which each was read."""

    def read(self) -> frozenset[str]:
        rows = WordPronunciation.objects.order_by().values_list("organization_id", flat=True)
        # No two are the same object, so that what was read before a change is known as old.
        return frozenset(map(str, rows.distinct()))

    async def of(self, voice: VoiceRef, organization_id: str) -> Lexicon:
        """The lexicon of the account for ``voice``.

        While the database does not answer it is the last one that was read, else empty.
        """
        snapshot = self.snapshot
        if organization_id not in snapshot:
            return NO_PRONUNCIATIONS
        held = self._held.get(organization_id)
        if held is None or held[0] is not snapshot:
            held = snapshot, await self._read(organization_id, held)
            self._held[organization_id] = held
            while len(self._held) > MOST_HELD:
                self._held.popitem(last=False)
        self._held.move_to_end(organization_id)
        return held[1].of(voice)

    async def _read(
        self, organization_id: str, before: tuple[frozenset[str], Entries] | None
    ) -> Entries:
        try:
            rows = await threads.run(partial(existing, organization_id))
        except InternalError:
            return before[1] if before is not None else Entries(())
        return Entries(
            Pronunciation(
                row.word,
                row.pronunciation,
                Alphabet(row.alphabet),
                row.language,
                row.case_sensitive,
            )
            for row in rows
        )


pronunciations = Pronunciations(watcher)
"""The pronunciations of this process."""
