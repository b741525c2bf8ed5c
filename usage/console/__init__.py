"""The console's pages for usage and requests."""
