"""The admin site's own words."""

from __future__ import annotations

from django.contrib import admin

admin.site.site_header = "svc operations"
admin.site.site_title = "svc operations"
admin.site.index_title = "Catalog, keys, limits and the ledger"
# The admin shares its origin with an API, which has no page to view.
admin.site.site_url = None
