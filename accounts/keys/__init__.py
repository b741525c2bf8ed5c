"""API keys: mint, look up on the hot path, rotate, revoke."""
