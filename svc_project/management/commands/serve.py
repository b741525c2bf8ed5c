"""``manage.py serve``: the production server.

From the command line ``manage.py`` runs it without Django (``svc_project.serving.supervisor``). This
command is for another one that serves, and for ``help``.
"""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from svc_project.serving import supervisor


class Command(BaseCommand):
    help = (
        "Serve both surfaces until SIGTERM, which drains. SIGHUP, and the command reload, hand over to "
        "the release that is now installed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        supervisor.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        names = ("host", "port", "speech_port", "workers")
        try:
            supervisor.serve(
                argparse.Namespace(**{name: options[name] for name in names}), reloads=False
            )
        except supervisor.CannotServe as error:
            raise CommandError(str(error), returncode=error.status) from None
