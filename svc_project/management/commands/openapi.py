"""``openapi NAME``: print an OpenAPI document, as in docs/api."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from svc_project.openapi import DOCUMENTS, printed


class Command(BaseCommand):
    help = "Print the OpenAPI 3.1 document of a surface, or of the management API."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("document", choices=[str(name) for name in DOCUMENTS])

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(printed(options["document"]), ending="")
