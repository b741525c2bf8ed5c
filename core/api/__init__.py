"""Base classes for the views of both surfaces, and pieces of their OpenAPI documents."""
