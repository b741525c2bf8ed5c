"""The admin pages of the catalog, its lifecycle, backends and diagnostic captures."""

from inference.admin import captures, catalog  # noqa: F401  # registers the pages
