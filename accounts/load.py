"""Applies the tables of organizations and users of a file to the database.

Rows that the file does not name stay as they are, and so does what a table leaves out of a row that
exists. No secret is in a file: a new user has no password, and keys are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final, Literal

import msgspec
from django.core.exceptions import ValidationError
from django.db import transaction
from msgspec import UNSET, Meta, UnsetType

from accounts import organizations, users
from accounts.changes import KEYS, lock
from accounts.models import Organization, User
from core.catalog_tables import CatalogFileError, Table, require_unique, shape_error

Limit = Annotated[int, Meta(ge=1, le=10**15)] | Literal["unlimited"] | UnsetType

_COLUMNS: Final = {"diagnostic_captures": "captures_allowed"}
"""Where a column's name differs from the key of its table."""
_KEYS: Final = {column: key for key, column in _COLUMNS.items()}


class OrganizationTable(Table, frozen=True):
    """An ``[[organizations]]`` table."""

    name: str
    plan: Literal["standard", "enterprise"] | UnsetType = UNSET
    priority: Literal["interactive", "standard", "batch"] | UnsetType = UNSET
    requests_per_minute: Limit = UNSET
    tokens_per_minute: Limit = UNSET
    speech_requests_per_minute: Limit = UNSET
    speech_characters_per_day: Limit = UNSET
    diagnostic_captures: bool | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET

    def columns(self) -> dict[str, Any]:
        """The columns that the table sets, but ``disabled``; no limit is None."""
        given = {
            name: getattr(self, name)
            for name in self.__struct_fields__
            if name not in ("name", "disabled")
        }
        return {
            _COLUMNS.get(name, name): None if value == "unlimited" else value
            for name, value in given.items()
            if value is not UNSET
        }


class UserTable(Table, frozen=True):
    """A ``[[users]]`` table: a user of the console."""

    email: str
    organizations: list[str] | UnsetType = UNSET
    active: bool | UnsetType = UNSET


class AccountTables(Table, frozen=True):
    """The part of a file that is about organizations and users."""

    organizations: list[OrganizationTable]
    users: list[UserTable]


def read_account_tables(
    organizations: list[dict[str, Any]], users: list[dict[str, Any]]
) -> AccountTables:
    """Parse the tables. Raises ``CatalogFileError`` for an unknown or missing key, a wrong type, a
    name given twice."""
    try:
        tables = msgspec.convert({"organizations": organizations, "users": users}, AccountTables)
    except msgspec.ValidationError as error:
        raise shape_error(str(error)) from None
    require_unique([table.name for table in tables.organizations], "organizations", "name")
    require_unique([_folded(table.email) for table in tables.users], "users", "email")
    for index, table in enumerate(tables.users):
        if table.organizations is not UNSET:
            require_unique(table.organizations, f"users[{index}].organizations")
    return tables


@transaction.atomic
def load_accounts(tables: AccountTables) -> list[str]:
    """Apply ``tables`` and return a description of each change, in order.

    Raises ``CatalogFileError``, which names the table and key; nothing is changed then.
    """
    lock(KEYS)
    found: list[str] = []
    for index, organization in enumerate(tables.organizations):
        found += _organization(organization, f"organizations[{index}]")
    for index, user in enumerate(tables.users):
        found += _user(user, f"users[{index}]")
    return found


def _organization(table: OrganizationTable, where: str) -> Iterator[str]:
    label = f"organization {table.name}"
    row = Organization.objects.filter(name=table.name).first()
    columns = table.columns()
    differing = {
        name: (getattr(row, name), value)
        for name, value in columns.items()
        if row is not None and getattr(row, name) != value
    }
    if row is None or differing:
        with _refusals(where):
            organizations.change(table.name, columns)
        if row is None:
            yield f"created {label}"
        for name, (old, new) in differing.items():
            yield f"{label}: {_KEYS.get(name, name)} {_shown(old)} -> {_shown(new)}"
    if table.disabled is not UNSET:
        chosen = Organization.objects.filter(name=table.name)
        if organizations.set_disabled(chosen, disabled=table.disabled):
            yield f"{'disabled' if table.disabled else 'enabled'} {label}"


def _user(table: UserTable, where: str) -> Iterator[str]:
    label = f"user {_folded(table.email)}"
    row = User.objects.filter(email=_folded(table.email)).first()
    chosen: users.Chosen = {}
    lines = [f"created {label}, who has no password yet"] if row is None else []
    if table.active is not UNSET and table.active != (row is None or row.is_active):
        chosen["active"] = table.active
        lines.append(f"{'enabled' if table.active else 'disabled'} {label}")
    if table.organizations is not UNSET:
        named = _named(table.organizations, f"{where}.organizations")
        had = set() if row is None else set(row.organizations.all())
        if had != set(named):
            chosen["organizations"] = named
            lines += [f"{label}: joins {each}" for each in named if each not in had]
            left = sorted(had - set(named), key=str)
            lines += [f"{label}: leaves {each}" for each in left]
    if lines:
        with _refusals(where):
            users.change(table.email, **chosen)
    yield from lines


def _named(names: list[str], where: str) -> list[Organization]:
    rows = {row.name: row for row in Organization.objects.filter(name__in=names)}
    for index, name in enumerate(names):
        if name not in rows:
            raise CatalogFileError(f"{where}[{index}]", f"There is no organization {name}.")
    return [rows[name] for name in names]


def _shown(value: Any) -> Any:
    return "unlimited" if value is None else value


def _folded(email: str) -> str:
    return email.strip().lower()


@contextmanager
def _refusals(where: str) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        column, messages = next(iter(error.message_dict.items()))
        raise CatalogFileError(f"{where}.{_KEYS.get(column, column)}", messages[0]) from None
