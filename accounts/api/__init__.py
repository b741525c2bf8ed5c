"""The management API under /manage/v1/: its base, and the resources of accounts."""
