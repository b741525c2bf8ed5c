"""The console's frame, and its pages for API keys."""
