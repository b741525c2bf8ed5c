"""Benchmarks of the chat path; run by ``python -m benchmarks`` (docs/measurements/chat.md)."""
