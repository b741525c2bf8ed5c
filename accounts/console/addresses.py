"""The addresses of the console's pages, which name the organization that a page is about.

In ``/console/acme/usage`` ``acme`` is the organization's name in letters for addresses, or its id where
the name would not do: another of the person's organizations has the same, or a page begins so. Pages and
templates reverse an address without the organization: ``reverse`` and the tag ``url`` fill in that of the
page that is being answered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from django import urls
from django.http import HttpResponseRedirect
from django.template import Library
from django.template.base import Parser, Token
from django.template.context import Context
from django.template.defaulttags import URLNode
from django.template.defaulttags import url as parse_url

from accounts.models import Organization

ROOT: Final = "/console/"

FIRST_PARTS: Final = frozenset(
    {
        *("keys", "login", "logout", "models", "organization", "password", "playground"),
        *("profile", "requests", "usage", "voices"),
    }
)
"""What an address has after ``/console/`` where it names no organization."""

register = Library()

_shown: ContextVar[str | None] = ContextVar("organization_in_addresses", default=None)


class OrganizationConverter:
    """The part of a path that names an organization."""

    regex = rf"(?!(?:{'|'.join(sorted(FIRST_PARTS))})(?:/|$))[a-z0-9-]{{1,60}}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


def names_of(organizations: Sequence[Organization]) -> dict[Organization, str]:
    """The names that a person's ``organizations`` have in addresses."""
    counts = Counter(each.slug for each in organizations)
    return {
        each: each.slug if counts[each.slug] == 1 and each.slug not in FIRST_PARTS else str(each.pk)
        for each in organizations
    }


def named(name: str, organizations: Sequence[Organization]) -> Organization | None:
    """The one of a person's ``organizations`` that an address names, by name or id."""
    return next(
        (each for each, own in names_of(organizations).items() if name in (own, str(each.pk))),
        None,
    )


@contextmanager
def inside(name: str) -> Iterator[None]:
    """Let addresses name the organization with ``name`` inside."""
    token = _shown.set(name)
    try:
        yield
    finally:
        _shown.reset(token)


def reverse(page: str, args: Iterable[Any] = ()) -> str:
    """As Django's; the address of an organization's page names the one that is shown."""
    shown = _shown.get()
    if shown is not None and is_of_organization(page):
        args = (shown, *args)
    return urls.reverse(page, args=[*args])


def redirect(page: str, *args: Any) -> HttpResponseRedirect:
    """A redirect to ``reverse``."""
    return HttpResponseRedirect(reverse(page, args))


def is_of_organization(page: str | None) -> bool:
    """Whether the page with this name is one of an organization."""
    return page in _pages_of_organizations()


@cache
def _pages_of_organizations() -> frozenset[str]:
    known = urls.get_resolver().reverse_dict
    return frozenset(
        page
        for page in known
        if isinstance(page, str)
        and any(
            "organization" in parameters
            for routes, *_ in known.getlist(page)
            for _, parameters in routes
        )
    )


class _Shown:
    """An argument of the tag whose value is the organization that is shown."""

    def resolve(self, context: Context) -> str | None:
        return _shown.get()


class _OrganizationUrlNode(URLNode):
    def render(self, context: Context) -> Any:
        if _shown.get() is None or not is_of_organization(self.view_name.resolve(context)):
            return super().render(context)
        args: list[Any] = [_Shown(), *self.args]
        return URLNode(self.view_name, args, self.kwargs, self.asvar).render(context)


@register.tag
def url(parser: Parser, token: Token) -> URLNode:
    """Django's own tag, with ``reverse`` of this module."""
    parsed = parse_url(parser, token)
    return _OrganizationUrlNode(parsed.view_name, parsed.args, parsed.kwargs, parsed.asvar)
