"""Rate limits, in memory or in Redis."""
