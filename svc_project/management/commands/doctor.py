"""Check an installation, one line a check."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from svc_project.doctor.examination import examine
from svc_project.doctor.findings import Finding, has_fault, line_of, show


class Command(BaseCommand):
    help = (
        "Check settings, secrets, proxies, the journal's disk, Redis, the database, its schema, clocks and "
        "backends: one line each, with what to do. The status is 1 where there is a fault. Nothing is "
        "changed; each backend with a key gets one request with it."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print one JSON array.")

    def handle(self, *args: Any, **options: Any) -> None:
        found: list[Finding] = []
        for each in examine():
            found.append(each)
            if not options["json"]:
                # At once, because a server that is away takes its time.
                self.stdout.write(line_of(each))
                self.stdout.flush()
        if options["json"]:
            self.stdout.write(show(found, as_json=True), ending="")
        if has_fault(found):
            sys.exit(1)
