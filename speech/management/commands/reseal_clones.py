"""``reseal_clones``: encrypt the reference clips of clones with the newest key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from speech.voices.clones.clips import reseal


class Command(BaseCommand):
    help = (
        "Encrypt every reference clip with the first of SVC_CLONE_KEYS that another one encrypted. "
        "Can run while requests are served. Afterwards the other keys can be dropped."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        found = reseal()
        self.stdout.write(
            f"{found.resealed} clip(s) encrypted anew, {found.kept} had the newest key already"
        )
        if found.unreadable:
            raise CommandError(
                f"{len(found.unreadable)} clip(s) cannot be read with any of SVC_CLONE_KEYS: "
                f"{', '.join(found.unreadable)}. Add their key, or delete the clones."
            )
