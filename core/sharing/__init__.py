"""Resources shared fairly between callers: slots, places, bytes, threads."""
