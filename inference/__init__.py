"""The chat surface: catalog, admission, backends and the story of one chat request."""
