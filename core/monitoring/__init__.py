"""Metrics, stats shared between workers, and log filters."""
