"""Logs, the request log, traces and metrics."""
