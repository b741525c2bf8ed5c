"""Make a console user, or change the one with that email address."""

from __future__ import annotations

import sys
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from accounts.management.arguments import add_json_flag, find_organization, refusal, report
from accounts.models import Membership, User


class Command(BaseCommand):
    help = (
        "Make a console user who belongs to an organization. Run again with the same address, it "
        "adds the organization, sets the password and grants what is given; it takes nothing away."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument(
            "--organization", metavar="NAME", required=True, help="Its name or its id."
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
        organization = find_organization(options["organization"], "--organization")
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
            Membership.objects.get_or_create(user=user, organization=organization)
        report(
            self,
            options["json"],
            {"user_id": str(user.pk), "organization_id": str(organization.pk)},
            f"{'Made' if made else 'Updated'} user {user.email} of {organization.name}"
            f"{', an operator' if user.is_staff else ''}.",
        )


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
