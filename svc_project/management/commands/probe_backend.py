"""``probe_backend NAME_OR_URL``: probe a model server, and write the settings that fit."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from core import variables
from core.backends.validators import check_base_url
from inference.models import Backend
from inference.models.backends import check_headers
from inference.probe import apply, findings
from inference.probe.client import Target
from inference.probe.connect import KeyUnreadable, candidates, deployed, target_of
from inference.probe.findings import ServerFindings, fitting
from inference.probe.publishing import backend_name
from inference.probe.run import probe


class Command(BaseCommand):
    help = (
        "Probe a model server's abilities: chat, streams, token counts, output cap, tool calls, "
        "JSON schemas, context, disconnects. With --write the settings that fit go into the "
        "catalog. Fails when chat works with none of the models tried."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "backend", metavar="NAME_OR_URL", help="a backend of the catalog, or an address"
        )
        parser.add_argument(
            "--model",
            action="append",
            default=[],
            help="a model, as the server calls it; may be repeated. Default: those that the "
            "catalog has on this backend, or those that the server lists",
        )
        parser.add_argument("--write", action="store_true", help="write the settings that fit")
        parser.add_argument("--json", action="store_true", help="print the findings as JSON")
        parser.add_argument(
            "--seconds", type=float, default=60.0, help="how long each answer may take (60)"
        )
        new = parser.add_argument_group("an address that is not in the catalog yet")
        new.add_argument("--api-key-env", default="", help="the variable that holds its key")
        new.add_argument(
            "--header", action="append", default=[], metavar="NAME=VALUE", help="may be repeated"
        )
        new.add_argument("--name", help="what --write calls the new backend")

    def handle(self, *args: Any, **options: Any) -> None:
        given: str = options["backend"]
        try:
            headers = check_headers(_headers(options["header"]))
            row = _row(given)
            if row is None:
                check_base_url(given)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        target = _target(given, row, options["api_key_env"], headers, options["seconds"])
        models = options["model"] or (deployed(row) if row else [])
        server = asyncio.run(probe(target, models, self._tell))
        comparison = apply.compare(row, server) if row else apply.Comparison([], [])
        writes = bool(options["write"] and server.working)
        made = self._written(row, server, comparison, options, headers) if writes else None
        if options["json"]:
            self._print_json(server, comparison)
        else:
            self._print(server, comparison, wrote=writes)
        if made is not None:
            self._tell(
                f"created backend {made}; it serves nothing before a model names it "
                "(docs/operate/catalog.md)"
            )
        if not server.working:
            raise CommandError(_failure(server))

    def _tell(self, line: str) -> None:
        self.stderr.write(line)
        self.stderr.flush()

    def _print(self, server: ServerFindings, comparison: apply.Comparison, *, wrote: bool) -> None:
        lines = findings.findings_table(server)
        if server.working:
            lines += findings.settings_table(fitting(server))
        if comparison.changes:
            lines.append("written" if wrote else "the catalog differs; --write changes it")
            lines += [f"  {change}" for change in comparison.changes]
        if comparison.remarks:
            lines.append("left as it is")
            lines += [f"  {remark}" for remark in comparison.remarks]
        for line in lines:
            self.stdout.write(line)

    def _print_json(self, server: ServerFindings, comparison: apply.Comparison) -> None:
        content = {
            "findings": server,
            "settings": fitting(server),
            "differences": [str(change) for change in comparison.changes],
            "remarks": list(comparison.remarks),
        }
        self.stdout.write(msgspec.json.format(msgspec.json.encode(content)).decode())

    def _written(
        self,
        row: Backend | None,
        server: ServerFindings,
        comparison: apply.Comparison,
        options: dict[str, Any],
        headers: dict[str, str],
    ) -> Backend | None:
        """Write the settings that fit; returns the backend created for a new address."""
        try:
            if row is not None:
                apply.write(comparison.changes)
                return None
            name = options["name"] or backend_name(server.base_url)
            variable = options["api_key_env"]
            return apply.created(name, server, api_key_env=variable, headers=headers)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None


def _headers(given: list[str]) -> dict[str, str]:
    return dict(each.partition("=")[::2] for each in given)


def _row(given: str) -> Backend | None:
    """The backend with the name or address ``given``; None for a new address."""
    if "://" not in given:
        row = Backend.objects.filter(name=given).first()
        if row is None:
            known = ", ".join(Backend.objects.values_list("name", flat=True)) or "none"
            raise CommandError(
                f"There is no backend {given}; there are: {known}. An address begins with http://."
            )
        return row
    addresses = candidates(given)
    try:
        rows = [row for row in Backend.objects.all() if row.base_url.rstrip("/") in addresses]
    except DatabaseError:
        # A server can be probed before there is a database.
        return None
    return rows[0] if len(rows) == 1 else None


def _target(
    given: str, row: Backend | None, api_key_env: str, headers: dict[str, str], seconds: float
) -> Target:
    if row is not None:
        try:
            return target_of(row, seconds)
        except KeyUnreadable as error:
            raise CommandError(str(error)) from None
    if found := variables.problem(api_key_env):
        raise CommandError(found)
    key = variables.secret_of(api_key_env)
    sent = {**headers, "Authorization": f"Bearer {key}"} if key else headers
    return Target(base_url=given, headers=sent, has_key=key is not None, seconds=seconds)


def _failure(server: ServerFindings) -> str:
    if not server.connection.value:
        return f"{server.base_url}: {server.connection.words}."
    if not server.models:
        return f"{server.base_url}: {server.listing.words}. Give --model."
    return f"{server.base_url}: chat works with none of the models tried."
