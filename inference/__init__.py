"""The chat surface: catalog, admission, backends, and the handling of a chat request."""
