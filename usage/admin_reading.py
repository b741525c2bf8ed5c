"""What the ledger's admin pages have in common: read, never written, and never from end to end."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html

from accounts.models import ApiKey, Organization
from svc_project.lib.clock import iso_milliseconds
from svc_project.lib.ids import NIL_UUID
from usage.admin_filters import BoundedPaginator

if TYPE_CHECKING:  # generic in the stubs only
    AnyAdmin = admin.ModelAdmin[Any]
else:
    AnyAdmin = admin.ModelAdmin


class LedgerAdmin(AnyAdmin):
    """A table of the ledger: counts stop early, searches are exact."""

    sortable_by = ()
    list_per_page = 50
    paginator = BoundedPaginator
    show_full_result_count = False
    # Facets count the rows of every choice of every filter.
    show_facets = admin.ShowFacets.NEVER
    actions = None

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_fields(request, obj)

    @admin.display(description="organization")
    def shown_organization_id(self, row: Any) -> str:
        organization = Organization.objects.filter(pk=row.organization_id).first()
        return link("accounts_organization", row.organization_id, organization)

    @admin.display(description="organization")
    def only_organization(self, row: Any) -> str:
        """The name that ``with_organization`` found; it leads to the rows of this one only."""
        name = row.organization_name or row.organization_id
        return format_html('<a href="?q={}">{}</a>', row.organization_id, name)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class RequestsAdmin(LedgerAdmin):
    """Rows of one request each by their ids, which is by time."""

    # Only that the search field appears; ``get_search_results`` decides what it finds.
    search_fields = ("request_id",)
    search_help_text = (
        "A request id, an organization's id or name, or a key's id or prefix; each whole. "
        "Searches all times unless one is chosen."
    )
    ordering: ClassVar[tuple[str, ...]] = ("-request_id",)
    shown: ClassVar[tuple[str, ...]] = ("occurred_at", "organization_id", "api_key_id")
    """Fields that have a method ``shown_*`` to show them."""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Exactly what is named by ``search_term``; an unknown name finds nothing."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if term.startswith("req_"):
            return queryset.filter(request_id=term), False
        api_key = ApiKey.objects.filter(**_named(term, "prefix", term.rstrip("…"))).first()
        if api_key is not None:
            # With the organization the index by organization serves.
            queryset = queryset.filter(
                organization_id=api_key.organization_id, api_key_id=api_key.pk
            )
        else:
            organization_id = named_organization(term)
            if organization_id is None:
                return queryset.none(), False
            queryset = queryset.filter(organization_id=organization_id)
        return queryset.order_by("-occurred_at", "-request_id"), False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = (field.name for field in self.model._meta.fields)
        return [f"shown_{name}" if name in self.shown else name for name in names]

    @admin.display(description="occurred at")
    def shown_occurred_at(self, row: Any) -> str:
        return iso_milliseconds(row.occurred_at)

    @admin.display(description="API key")
    def shown_api_key_id(self, row: Any) -> str:
        if row.api_key_id == NIL_UUID:
            return "unattributed"
        return link(
            "accounts_apikey", row.api_key_id, ApiKey.objects.filter(pk=row.api_key_id).first()
        )


def with_organization(rows: QuerySet[Any]) -> QuerySet[Any]:
    """``rows``, each with the ``organization_name`` that its organization has now, or None."""
    organization = Organization.objects.filter(pk=OuterRef("organization_id"))
    named: QuerySet[Any] = rows.annotate(organization_name=Subquery(organization.values("name")))
    return named


def named_organization(term: str) -> uuid.UUID | None:
    """The id of the organization with the id or name ``term``."""
    organization = Organization.objects.filter(**_named(term, "name", term)).first()
    return None if organization is None else organization.pk


def _named(term: str, field: str, value: str) -> dict[str, Any]:
    """How ``term`` names an object: by its id when it is a UUID, else by ``field``."""
    try:
        return {"pk": uuid.UUID(term)}
    except ValueError:
        return {field: value}


def link(page: str, object_id: uuid.UUID, text: object | None) -> str:
    """A link to the admin page of what still exists (``text``), and the id as the row has it."""
    try:
        address = reverse(f"admin:{page}_change", args=[object_id])
    except NoReverseMatch:
        text = None
    if text is None:
        return f"{object_id} (no longer here)"
    return format_html('<a href="{}">{}</a> {}', address, text, object_id)
