"""Make a console user, or change the one with that email address."""

from __future__ import annotations

import sys
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import users
from accounts.management.arguments import add_json_flag, find_organization, refusal, report
from accounts.models import Organization, User


class Command(BaseCommand):
    help = (
        "Make a console user who belongs to an organization, or an operator, who need not. Run again "
        "with the same address, it adds the organization, sets the password and grants what is given; "
        "it takes nothing away."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument(
            "--organization",
            metavar="NAME",
            help="Its name or its id. A new user who is no operator needs one.",
        )
        parser.add_argument(
            "--password-stdin",
            action="store_true",
            help="Read the password from the first line of the standard input.",
        )
        parser.add_argument(
            "--operator", action="store_true", help="May use the admin, with every permission."
        )
        parser.add_argument(
            "--owner",
            action="store_true",
            help="An owner of the organization, who decides what is kept of content, and reads it.",
        )
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        organization = _organization(options)
        _require_login(options)
        password = sys.stdin.readline().rstrip("\r\n") if options["password_stdin"] else None
        chosen: users.Chosen = {"operator": options["operator"], "owner": options["owner"]}
        if password is not None:
            chosen["password"] = password
        if organization is not None:
            chosen["joins"] = organization
        try:
            user, made = users.change(options["email"], **chosen)
        except ValidationError as error:
            arguments = {"email": "EMAIL", "password": "--password-stdin"}
            raise refusal(error, arguments) from None
        report(
            self,
            options["json"],
            {"user_id": str(user.pk)}
            | ({"organization_id": str(organization.pk)} if organization else {}),
            f"{'Made' if made else 'Updated'} user {user.email}"
            f"{f' of {organization.name}' if organization else ''}"
            f"{', an operator' if user.is_staff else ''}.",
        )


def _organization(options: dict[str, Any]) -> Organization | None:
    if options["organization"]:
        return find_organization(options["organization"], "--organization")
    if options["owner"]:
        raise CommandError("--owner: say of which organization: --organization NAME.")
    return None


def _require_login(options: dict[str, Any]) -> None:
    """Raise ``CommandError`` where the user could not log in afterwards, or nothing would be done."""
    found = User.objects.filter(email=options["email"].strip().lower()).first()
    given = options["organization"] or options["operator"]
    if found is None:
        if not given:
            raise CommandError("--organization: a user who is no operator needs one.")
        if not options["password_stdin"]:
            raise CommandError("--password-stdin: a new user needs a password.")
        return
    if not found.is_active:
        raise CommandError("EMAIL: this user is disabled. `users enable` ends that.")
    if not given and not options["password_stdin"]:
        raise CommandError(
            "EMAIL: there is this user already. Give what to add: --password-stdin, --organization or --operator."
        )
