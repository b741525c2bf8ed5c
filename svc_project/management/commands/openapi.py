"""``openapi SURFACE``: print the OpenAPI document of a surface, as in docs/api."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from svc_project.openapi import DOCUMENTS, printed
from svc_project.surfaces import Surface


class Command(BaseCommand):
    help = "Print the OpenAPI 3.1 document of a surface."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("surface", choices=[surface.value for surface in DOCUMENTS])

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(printed(Surface(options["surface"])), ending="")
