"""The neural engine: Kokoro-82M in worker processes."""
