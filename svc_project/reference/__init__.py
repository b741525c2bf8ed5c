"""The API reference and the error guide of /docs/, made from the OpenAPI documents and the error classes."""
