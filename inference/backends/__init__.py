"""Model servers: the HTTP client, the choice of a backend for each request, and their health."""
