"""Routes, health, and the speech surface's OpenAPI document."""
