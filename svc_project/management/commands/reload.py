"""``manage.py reload``: hand the running gateway over to the release that is now installed."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from svc_project.serving import state_file

_LOOK_SECONDS = 0.1


class Command(BaseCommand):
    help = (
        "Start the processes of the installed release beside the running ones, let them take over when "
        "they are ready, and return then. A release that does not get ready changes nothing; the status "
        "is 1."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--seconds", type=float, default=660.0, help="how long to wait for the new release"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        before = self._state()
        if before.reloading:
            raise CommandError("A reload is under way. Wait for its end.")
        if not before.takes_reloads:
            raise CommandError(
                f"The gateway (process {before.pid}) takes no reload: it ignores SIGHUP, as under nohup, or is one of "
                "`make run`. Restart it."
            )
        with contextlib.suppress(ProcessLookupError):
            os.kill(before.pid, signal.SIGHUP)
        deadline = time.monotonic() + options["seconds"]
        has_begun = False
        while time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
            state = self._state()
            if state.generation > before.generation:
                self.stdout.write(f"Generation {state.generation} serves.")
                return
            if has_begun and not state.reloading and state.failure:
                raise CommandError(f"The running release goes on: {state.failure}")
            has_begun |= state.reloading
        raise CommandError("The reload is not over. The gateway's log says how it stands.")

    def _state(self) -> state_file.State:
        state = state_file.read(settings.SVC_DATA_DIR)
        if state is None:
            raise CommandError(
                f"No gateway runs on {settings.SVC_DATA_DIR}. Give this command the settings of the "
                "gateway, SVC_DATA_DIR first."
            )
        return state
