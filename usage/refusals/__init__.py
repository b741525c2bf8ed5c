"""Requests that were refused: counts by hour, and the newest ones of each organization."""
