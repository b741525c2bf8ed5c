"""``GET /v1/usage`` and ``GET /v1/usage/export``."""
