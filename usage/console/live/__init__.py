"""Requests that appear in the console's list as they end."""
