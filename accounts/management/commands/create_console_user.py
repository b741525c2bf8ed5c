"""Make a console user, or change the one with that email address."""

from __future__ import annotations

import sys
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from accounts.management.arguments import add_json_flag, find_organization, refusal, report
from accounts.models import Membership, Organization, User


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
            help="Its name or its id. Only an operator may be without one.",
        )
        parser.add_argument(
            "--password-stdin",
            action="store_true",
            help="Read the password from the first line of the standard input.",
        )
        parser.add_argument(
            "--operator", action="store_true", help="May use the admin, with every permission."
        )
        add_json_flag(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        organization = _organization(options)
        password = sys.stdin.readline().rstrip("\r\n") if options["password_stdin"] else None
        email = options["email"].strip().lower()
        with transaction.atomic():
            user = User.objects.filter(email=email).first()
            made = user is None
            user = user or User(email=email)
            _set_password(user, password, made)
            if options["operator"]:
                user.is_staff = user.is_superuser = True
            try:
                user.full_clean()
            except ValidationError as error:
                raise refusal(error, {"email": "EMAIL"}) from None
            user.save()
            if organization is not None:
                Membership.objects.get_or_create(user=user, organization=organization)
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
    if not options["operator"]:
        raise CommandError("--organization: a user who is no operator needs one.")
    return None


def _set_password(user: User, password: str | None, made: bool) -> None:
    if not user.is_active:
        raise CommandError("EMAIL: this user is deactivated. Activate it in the admin first.")
    if password is None:
        if made:
            raise CommandError("--password-stdin: a new user needs a password.")
        return
    # The same password again would end the user's sessions for nothing.
    if made or not user.check_password(password):
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise CommandError(f"--password-stdin: {' '.join(error.messages)}") from None
        user.set_password(password)
