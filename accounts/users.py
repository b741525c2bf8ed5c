"""Changes of users, for the commands, the management API and files.

A user is known by the email address, folded to lower case. Users are disabled, never deleted: the audit
log and the admin's history name them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict, Unpack

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from accounts import members
from accounts.models import Membership, Organization, Role, User


class Chosen(TypedDict, total=False):
    """What a change sets of a user; what is left out stays as it is."""

    password: str
    active: bool
    """Whether the user may log in. Keys that a disabled user made go on working."""
    operator: bool
    """True grants every permission of the admin; False takes nothing away."""
    organizations: Iterable[Organization]
    """All that the user is a member of."""
    owner_of: Iterable[Organization]
    """All that the user owns; operators add what has no owner (``accounts.members``)."""
    joins: Organization
    """One of which the user is a member too."""
    owner: bool
    """True makes the user an owner of what it joins; False takes nothing away."""


class _MadeMeanwhile(Exception):
    """Another transaction made the user since this one looked for it."""


def change(
    named: str | User, *, spare_operators: bool = False, **chosen: Unpack[Chosen]
) -> tuple[User, bool]:
    """Set what is ``chosen`` of a user; one is made for an address that none has.

    Of several calls that make the same user at once, one makes it and the others change it.

    A user made without a password cannot log in until an operator or a one-time link sets one. With
    ``spare_operators`` an operator is not changed. Returns the user, and whether it was made. Raises
    ``django.core.exceptions.ValidationError`` that names an invalid field.
    """
    try:
        return _changed(named, chosen, spare_operators=spare_operators)
    except _MadeMeanwhile:
        pass
    try:
        return _changed(named, chosen, spare_operators=spare_operators)
    except _MadeMeanwhile:
        # The row that is in the way has the address in other letters, from before addresses were folded, so
        # that no search finds it.
        raise ValidationError({"email": "Another user has this address."}) from None


@transaction.atomic
def _changed(named: str | User, chosen: Chosen, *, spare_operators: bool) -> tuple[User, bool]:
    """Do what ``change`` says, once. Raises ``_MadeMeanwhile`` too."""
    # One that was found is known by the id: the address may have been changed since.
    of: dict[str, Any] = (
        {"email": named.strip().lower()} if isinstance(named, str) else {"pk": named.pk}
    )
    found = User.objects.select_for_update().filter(**of).first()
    user = found or User(**of)
    if spare_operators:
        require_no_operator(user)
    before = _columns(user)
    if (password := chosen.get("password")) is not None:
        _set_password(user, password)
    elif found is None:
        user.set_unusable_password()
    if chosen.get("operator"):
        user.is_staff = user.is_superuser = True
    user.is_active = chosen.get("active", user.is_active)
    if found is None or _columns(user) != before:
        _store(user)
    if (organizations := chosen.get("organizations")) is not None:
        _set_organizations(user, organizations)
    if (owned := chosen.get("owner_of")) is not None:
        _set_owned(user, owned)
    if (joined := chosen.get("joins")) is not None:
        membership, _ = Membership.objects.get_or_create(user=user, organization=joined)
        if chosen.get("owner") and membership.role != Role.OWNER:
            membership.role = Role.OWNER
            membership.save()
    return user, found is None


def require_no_operator(user: User) -> None:
    """Raise ``ValidationError`` for an operator.

    An admin key changes none: with a new password for one it would open the admin.
    """
    if user.is_staff or user.is_superuser:
        raise ValidationError(
            {"user": f"{user.email} is an operator. Only the admin and commands change operators."}
        )


def _columns(user: User) -> tuple[Any, ...]:
    return user.password, user.is_active, user.is_staff, user.is_superuser


def _set_password(user: User, password: str) -> None:
    # The same password again would end the user's sessions for nothing.
    if user._state.adding or not user.check_password(password):
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise ValidationError({"password": error.messages}) from None
        user.set_password(password)


def _store(user: User) -> None:
    # Only the database says whether the address is taken: a user that it knows is there to be changed.
    user.full_clean(validate_unique=False, validate_constraints=False)
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:
        raise _MadeMeanwhile from None


def _set_owned(user: User, organizations: Iterable[Organization]) -> None:
    try:
        members.appoint_in(user, organizations)
    except ValidationError as error:
        raise ValidationError({"owner_of": error.messages}) from None


def _set_organizations(user: User, organizations: Iterable[Organization]) -> None:
    chosen = list(organizations)
    Membership.objects.filter(user=user).exclude(organization__in=chosen).delete()
    for organization in chosen:
        Membership.objects.get_or_create(user=user, organization=organization)
