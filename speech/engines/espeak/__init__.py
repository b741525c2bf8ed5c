"""The embedded engine: espeak-ng in worker processes."""
