"""The catalog's views, their routes, and the surface's part of its OpenAPI document."""
